"""Objects on a network. The core queues requests, and these modules make them."""
