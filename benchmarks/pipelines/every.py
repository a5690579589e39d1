"""All chains."""

from benchmarks.pipelines import arrays, images, robots, tables, tokens

CHAINS = [
    *tables.CHAINS,
    *tokens.CHAINS,
    *arrays.CHAINS,
    *robots.CHAINS,
    *images.CHAINS,
]
