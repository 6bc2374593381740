"""What the projects of the benchmark, and their parts, are called."""

from typing import Final

PARTS: Final = (
    "billing-worker", "auth-gateway", "search-api", "admin-ui", "mobile-app", "report-builder", "email-sender",
    "catalog-sync", "payment-hub", "image-resizer", "audit-trail", "chat-relay", "data-exporter", "fraud-scorer",
    "geo-index", "job-runner", "ledger-core", "metrics-agent", "notifier", "order-router", "price-engine",
    "quota-keeper", "session-store", "webhook-proxy",
)  # fmt: skip
PROJECTS: Final = (
    "aurora", "basalt", "cobalt", "dune", "ember", "fjord", "granite", "harbor", "indigo", "jasper", "karst", "lagoon",
    "meadow", "nimbus", "onyx", "prairie", "quartz", "ridge", "savanna", "tundra", "umbra", "vertex", "willow", "xenon",
    "yarrow", "zephyr", "alder", "birch", "cedar", "drift", "elm", "flint", "glade", "heath", "iris", "juniper",
    "kelp", "larch", "moss", "nettle",
)  # fmt: skip
