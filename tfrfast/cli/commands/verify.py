"""Read every record and check both its CRCs. If any are wrong, list the damaged byte ranges and
exit with code 1.
"""

from __future__ import annotations

import argparse

from tfrfast.base.sizes import counted
from tfrfast.cli.common import add_common, print_json
from tfrfast.cli.damage import damage_table, tell_of_unfinished_work
from tfrfast.cli.ray import add_ray, executor_of
from tfrfast.jobs.verifying import verify
from tfrfast.storage.paths import expand_paths
from tfrfast.storage.schemes import is_url


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common(parser)
    add_ray(parser)


def run(options: argparse.Namespace) -> int:
    found = verify(options.paths, progress=options.progress, executor=executor_of(options))
    damage = found.damage
    if options.json:
        print_json(
            {
                "good_records": found.num_records,
                "bytes": found.num_bytes,
                "damage": damage,
            }
        )
    elif damage:
        good = counted(found.num_records, "good records")
        print(f"{good}, {counted(len(damage), 'damaged places')}:")
        print("\n".join(damage_table(damage)))
    else:
        print(
            f"{counted(found.num_records, 'records')} in {counted(found.num_shards, 'shards')}, "
            f"{counted(found.num_bytes, 'bytes')}: "
            "all good"
        )
    tell_of_unfinished_work(expand_paths(path for path in options.paths if not is_url(path)))
    return 1 if damage else 0
