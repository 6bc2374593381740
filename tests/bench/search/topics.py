"""What the handbook of the benchmark says, and how people ask for it: written by hand, apart from the ranker.

Of each topic: two wordings of the statement (the second leaves it to the headings which part of the project is meant),
questions in the statement's own words, questions in other words that share only some, and one that takes an earlier
value for granted. `{c}` is a part of the project, `{v}` the value, `{old}` what it was before.
"""

from dataclasses import dataclass
from typing import Final

PREFERENCES: Final = "User preferences"
KNOWLEDGE: Final = "Reusable knowledge"
FAILURES: Final = "Failures and how to do differently"


@dataclass(frozen=True, slots=True)
class Topic:
    """One kind of fact."""

    name: str
    section: str
    mark: str
    says: tuple[str, str]
    direct: tuple[str, str]
    paraphrased: tuple[str, str]
    still: str
    values: tuple[str, ...]


TOPICS: Final = (
    Topic(
        "port",
        KNOWLEDGE,
        "verified",
        ("{c} listens on port {v} in development", "the local server binds to port {v}"),
        ("which port does {c} listen on?", "port of {c} in development"),
        ("where do I reach {c} on localhost?", "curl to {c} is refused, what port should I be hitting locally?"),
        "is {c} still on port {old}?",
        tuple(str(port) for port in range(5401, 5461)),
    ),
    Topic(
        "packages",
        PREFERENCES,
        "stated",
        ("install dependencies of {c} with {v}, never with anything else", "dependencies are installed with {v} only"),
        ("how do I install dependencies of {c}?", "which installer for the dependencies of {c}?"),
        ("what package manager should I use in {c}?", "adding a library to {c}, which tool installs it?"),
        "can I install dependencies of {c} with {old}?",
        ("uv", "poetry", "pip-tools", "pnpm", "yarn", "npm", "bun", "cargo", "pdm", "conda"),
    ),
    Topic(
        "tests",
        KNOWLEDGE,
        "verified",
        ("the unit tests of {c} run with `{v}`", "`{v}` runs the unit tests"),
        ("how do I run the unit tests of {c}?", "command for the unit tests of {c}"),
        ("I changed {c}, how can I check that nothing broke?", "what starts the test suite for {c}?"),
        "do the unit tests of {c} run with `{old}`?",
        (
            "make check",
            "pytest -q -n 4",
            "tox -e py312",
            "pnpm vitest run",
            "go test ./...",
            "cargo nextest run",
            "just test",
            "nox -s unit",
            "bazel test //...",
            "npm run test:unit",
        ),
    ),
    Topic(
        "container",
        KNOWLEDGE,
        "verified",
        (
            "integration tests of {c} need the {v} container up before they start",
            "bring the {v} container up first, or the integration tests hang",
        ),
        ("what do the integration tests of {c} need?", "which container must be up for the integration tests of {c}?"),
        (
            "integration suite for {c} hangs at the beginning, what has to be running?",
            "what do I start with docker before the end to end checks of {c}?",
        ),
        "do the integration tests of {c} need the {old} container?",
        (
            "postgres",
            "redis",
            "kafka",
            "minio",
            "localstack",
            "rabbitmq",
            "clickhouse",
            "elasticsearch",
            "mailhog",
            "keycloak",
        ),
    ),
    Topic(
        "migration",
        KNOWLEDGE,
        "verified",
        ("schema migrations of {c} are applied with `{v}`", "apply schema migrations with `{v}`"),
        ("how are schema migrations of {c} applied?", "migrations command of {c}"),
        ("I added a column in {c}, how do I get it into the database?", "how do I upgrade the database schema of {c}?"),
        "are migrations of {c} applied with `{old}`?",
        (
            "alembic upgrade head",
            "flyway migrate",
            "prisma migrate deploy",
            "goose up",
            "sqlx migrate run",
            "rails db:migrate",
            "dbmate up",
            "atlas schema apply",
            "liquibase update",
            "knex migrate:latest",
        ),
    ),
    Topic(
        "deploy",
        KNOWLEDGE,
        "verified",
        ("{c} is deployed to staging by `{v}`", "a deploy to staging is `{v}`"),
        ("how is {c} deployed to staging?", "staging deploy of {c}"),
        ("how do I ship {c} to the test environment?", "release {c} so that QA can try it on staging"),
        "is {c} deployed with `{old}`?",
        (
            "make ship ENV=staging",
            "fly deploy --app stg",
            "helm upgrade --install stg",
            "cdk deploy Stg",
            "kubectl apply -k overlays/stg",
            "nomad run stg.hcl",
            "cap staging deploy",
            "gcloud run deploy stg",
            "serverless deploy --stage stg",
            "ansible-playbook stg.yml",
        ),
    ),
    Topic(
        "commits",
        PREFERENCES,
        "stated",
        ("when committing to {c}, the user wants {v} commit messages", "commit messages: {v}"),
        ("which commit messages does the user want in {c}?", "style of commit messages for {c}"),
        ("how should I word a commit in {c}?", "what format does the git log of {c} follow?"),
        "does the user still want {old} commit messages in {c}?",
        (
            "conventional",
            "imperative one-line",
            "ticket-prefixed",
            "gitmoji",
            "signed-off",
            "lower-case",
            "sentence-style",
            "scope-first",
        ),
    ),
    Topic(
        "timeout",
        KNOWLEDGE,
        "verified",
        ("requests from {c} to upstream time out after {v} seconds", "the upstream timeout is {v} seconds"),
        ("after how many seconds do requests from {c} time out?", "upstream timeout of {c}"),
        (
            "how long does {c} wait for upstream before it gives up?",
            "calls out of {c} are aborted too early, what is the limit?",
        ),
        "do requests from {c} time out after {old} seconds?",
        tuple(str(seconds) for seconds in (3, 4, 7, 9, 11, 13, 17, 19, 21, 23, 27, 31, 37, 41, 43, 47, 53)),
    ),
    Topic(
        "retries",
        KNOWLEDGE,
        "inferred",
        ("{c} retries failed jobs {v} times with exponential backoff", "failed jobs are retried {v} times"),
        ("how many times does {c} retry failed jobs?", "retries of failed jobs in {c}"),
        ("a job of {c} keeps failing, when does it stop trying again?", "attempts before {c} gives a job up"),
        "are failed jobs of {c} retried {old} times?",
        ("2", "4", "5", "6", "8", "9", "10", "12", "14", "15", "16", "18"),
    ),
    Topic(
        "flag",
        KNOWLEDGE,
        "verified",
        ("the new checkout of {c} hides behind the feature flag `{v}`", "feature flag: `{v}` turns the new flow on"),
        ("which feature flag hides the new checkout of {c}?", "feature flag of {c}"),
        ("how do I switch the new flow of {c} on?", "toggle for the rewritten checkout in {c}"),
        "does the feature flag `{old}` still exist in {c}?",
        tuple(
            f"{a}_{b}"
            for a in ("enable", "use", "beta")
            for b in ("fastPath", "newCheckout", "asyncFlow", "v2Pricing", "slimCart")
        ),
    ),
    Topic(
        "logs",
        KNOWLEDGE,
        "verified",
        ("{c} writes its logs to {v}", "logs go to {v}"),
        ("where does {c} write its logs?", "logs of {c}"),
        ("{c} crashed, where can I see what it printed?", "which file should I tail to debug {c}?"),
        "are the logs of {c} in {old}?",
        tuple(
            f"/var/log/{a}/{b}.jsonl"
            for a in ("svc", "apps", "team", "run")
            for b in ("main", "app", "daemon", "events")
        ),
    ),
    Topic(
        "envvar",
        KNOWLEDGE,
        "verified",
        ("{c} reads its database address from {v}", "the database address comes from {v}"),
        ("from which variable does {c} read its database address?", "database address of {c}"),
        (
            "what environment variable do I export so that {c} finds the database?",
            "{c} cannot connect to its db, which setting is missing?",
        ),
        "does {c} read its database address from {old}?",
        tuple(
            f"{a}_{b}"
            for a in ("APP", "SVC", "CORE", "MAIN")
            for b in ("DATABASE_URL", "DB_DSN", "PG_URI", "STORE_URL")
        ),
    ),
    Topic(
        "lint",
        PREFERENCES,
        "stated",
        ("format {c} with {v} before every commit", "always format with {v} before a commit"),
        ("what formats {c} before a commit?", "formatter of {c}"),
        ("which tool should I run over the code style of {c}?", "CI complains about whitespace in {c}, what fixes it?"),
        "should I format {c} with {old}?",
        ("ruff format", "black", "prettier", "biome", "gofmt", "rustfmt", "clang-format", "dprint", "yapf", "ktlint"),
    ),
    Topic(
        "branch",
        PREFERENCES,
        "stated",
        ("branches of {c} are named {v}", "name branches {v}"),
        ("how are branches of {c} named?", "branch names in {c}"),
        ("what do I call a new branch for {c}?", "naming scheme before I push work on {c}"),
        "are branches of {c} still named {old}?",
        (
            "feat/<ticket>-<slug>",
            "<user>/<slug>",
            "<ticket>/<slug>",
            "wip-<slug>",
            "dev/<user>/<slug>",
            "topic-<slug>",
            "fix-<ticket>",
            "<year>-<slug>",
        ),
    ),
    Topic(
        "cache",
        KNOWLEDGE,
        "inferred",
        ("{c} caches profiles for {v} minutes", "profiles are cached for {v} minutes"),
        ("for how many minutes does {c} cache profiles?", "profile cache of {c}"),
        ("a changed profile shows up late in {c}, why?", "how stale can user profiles be in {c}?"),
        "are profiles cached for {old} minutes in {c}?",
        tuple(str(minutes) for minutes in (2, 6, 8, 14, 16, 18, 22, 26, 28, 32, 34, 36, 38, 44, 46)),
    ),
    Topic(
        "error",
        FAILURES,
        "verified",
        (
            "{c} dies with {v} when the clock of the container drifts: restart chronyd and try again",
            "{v} means that the container's clock drifted; restart chronyd",
        ),
        ("when does {c} die with {v}?", "what to do about {v} in {c}?"),
        ("{v} again in {c}, how was this solved?", "{c} prints {v} and exits, known fix?"),
        "is {old} in {c} about the clock?",
        tuple(
            f"{a}{b}Error"
            for a in ("Token", "Lease", "Stamp", "Nonce", "Window")
            for b in ("Expired", "Skew", "Replay", "Range")
        ),
    ),
    Topic(
        "oom",
        FAILURES,
        "verified",
        (
            "the build of {c} runs out of memory below {v} GB: raise the limit of the builder first",
            "give the builder {v} GB, or the build is killed",
        ),
        ("how many GB does the build of {c} need?", "the build of {c} runs out of memory"),
        ("compiling {c} gets killed with exit 137, what helps?", "how large must the build machine be for {c}?"),
        "is a limit of {old} GB enough for the build of {c}?",
        ("3", "5", "6", "7", "9", "10", "11", "12", "13", "14", "18", "20", "22", "24"),
    ),
    Topic(
        "flaky",
        FAILURES,
        "inferred",
        (
            "`{v}` of {c} is flaky on CI because it depends on the order of rows: add an ORDER BY instead of retrying",
            "`{v}` fails now and then on CI: the rows come in any order, so sort them",
        ),
        ("why is `{v}` of {c} flaky?", "flaky test in {c} on CI"),
        (
            "CI of {c} is red at random, rerunning makes it green, which test is it?",
            "intermittent failure in the pipeline of {c}",
        ),
        "is `{old}` of {c} flaky?",
        tuple(
            f"test_{a}_{b}"
            for a in ("list", "export", "merge", "sync")
            for b in ("invoices", "members", "orders", "events")
        ),
    ),
    Topic(
        "region",
        KNOWLEDGE,
        "stated",
        ("production of {c} runs in {v}", "production runs in {v}"),
        ("in which region does production of {c} run?", "production region of {c}"),
        ("where is the live deployment of {c} hosted?", "which data centre serves customers of {c}?"),
        "does production of {c} run in {old}?",
        (
            "eu-central-1",
            "eu-west-3",
            "us-east-2",
            "us-west-1",
            "ap-southeast-2",
            "sa-east-1",
            "europe-north1",
            "asia-south1",
            "ca-central-1",
            "me-south-1",
        ),
    ),
    Topic(
        "reviewer",
        PREFERENCES,
        "stated",
        ("pull requests for {c} go to {v} for review", "ask {v} for review"),
        ("who reviews pull requests for {c}?", "review of {c}"),
        ("my change to {c} is ready, whom do I ask to look at it?", "who has to approve a merge in {c}?"),
        "does {old} review pull requests for {c}?",
        ("Amara", "Bogdan", "Chiara", "Dmitri", "Esra", "Farid", "Greta", "Hiroshi", "Ines", "Jonas", "Kavya", "Luca"),
    ),
    Topic(
        "generated",
        FAILURES,
        "stated",
        ("never edit {v} of {c} by hand: it is generated from the schema", "{v} is generated; do not edit it by hand"),
        ("which file of {c} is generated from the schema?", "may I edit {v} of {c} by hand?"),
        ("my manual changes in {c} vanish after a build, why?", "what must not be touched manually in {c}?"),
        "is {old} of {c} generated?",
        tuple(
            f"src/{a}/{b}"
            for a in ("gen", "api", "proto", "client")
            for b in ("types.ts", "models.py", "schema.rs", "stubs.go")
        ),
    ),
    Topic(
        "seed",
        KNOWLEDGE,
        "verified",
        ("`{v}` fills the database of {c} with sample data", "sample data comes from `{v}`"),
        ("what fills the database of {c} with sample data?", "sample data for {c}"),
        ("my local {c} is empty, how do I get something to click on?", "populate {c} with fake records"),
        "does `{old}` fill the database of {c}?",
        tuple(f"scripts/{a}_{b}.sh" for a in ("seed", "load", "fill") for b in ("demo", "fixtures", "sample", "dev")),
    ),
    Topic(
        "queue",
        KNOWLEDGE,
        "inferred",
        ("events of {c} are published to the topic {v}", "published events end up on {v}"),
        ("to which topic are events of {c} published?", "events topic of {c}"),
        ("I want to consume what {c} emits, where do I subscribe?", "kafka name for messages coming out of {c}"),
        "are events of {c} published to {old}?",
        tuple(
            f"{a}.{b}.v{n}"
            for a in ("core", "shop", "ops")
            for b in ("orders", "audit", "billing", "users")
            for n in (1, 2)
        ),
    ),
    Topic(
        "auth",
        KNOWLEDGE,
        "verified",
        ("{c} checks tokens with {v}", "tokens are checked with {v}"),
        ("with what does {c} check tokens?", "token check of {c}"),
        ("how does login verification work in {c}?", "authentication of requests in {c}, which library?"),
        "does {c} check tokens with {old}?",
        (
            "PyJWT",
            "jose",
            "Ory Oathkeeper",
            "Envoy ext_authz",
            "Keycloak introspection",
            "paseto",
            "oauth2-proxy",
            "OPA sidecar",
            "Auth0 SDK",
            "Cognito verifier",
        ),
    ),
    Topic(
        "rollback",
        KNOWLEDGE,
        "stated",
        ("a bad release of {c} is rolled back with `{v}`", "roll back with `{v}`"),
        ("how is a bad release of {c} rolled back?", "roll back {c}"),
        ("the last version of {c} broke production, how do I undo it?", "revert {c} to the previous deployment"),
        "is {c} rolled back with `{old}`?",
        (
            "helm rollback",
            "fly releases revert",
            "kubectl rollout undo",
            "make unship",
            "git revert && make ship",
            "nomad job revert",
            "argocd app rollback",
            "cap rollback",
        ),
    ),
)
"""250 statements of a project are made of these, for ten parts of it."""
