from memoryd.clock import SystemClock
from memoryd.ledger import spend
from memoryd.ledger.spend import Caps, Purpose
from tests.control.conftest import Shell

CAPS = Caps(1000, 10_000_000)
DAY = 86_400


def spent(shell: Shell, *, days_ago: int = 0, job: str = "one", model: str = "m", settled: bool = True) -> None:
    now = SystemClock().now() - days_ago * DAY
    request = shell.write(
        spend.reserve,
        now=now,
        purpose=Purpose("memory_stage1", job),
        provider="main",
        model=model,
        estimated_tokens=1000,
        estimated_cost=0.5,
        caps=CAPS,
    )
    if settled:
        shell.write(
            spend.settle,
            request,
            now=now,
            outcome="answered",
            tokens_in=100,
            tokens_out=20,
            tokens_cached=60,
            cost=0.25,
            duration_ms=1500,
            tokens_reasoning=15,
        )


def test_every_request_is_in_the_sums_also_one_that_was_cut_off(shell: Shell) -> None:
    """I9."""
    spent(shell)
    spent(shell, settled=False)
    said = shell("usage", "--json").json
    assert (said["by"], said["days"], len(said["rows"])) == ("day", 30, 1)
    total = said["total"]
    assert total == {
        "requests": 2,
        "estimated": 1,
        "tokens": 1120,
        "tokens_in": 100,
        "tokens_out": 20,
        "tokens_cached": 60,
        "tokens_reasoning": 15,
        "cost": 0.75,
        "duration_ms": 1500,
        "outcomes": {"answered": 1, "pending": 1},
    }
    assert {name: said["rows"][0][name] for name in total} == total


def test_days_are_utc_days_in_order_and_only_those_asked_for(shell: Shell) -> None:
    for days_ago in (0, 1, 40):
        spent(shell, days_ago=days_ago)
    rows = shell("usage", "--json").json["rows"]
    assert [row["requests"] for row in rows] == [1, 1]
    assert rows[0]["label"] < rows[1]["label"]
    assert len(shell("usage", "--days", "1", "--json").json["rows"]) == 1
    assert len(shell("usage", "--days", "100", "--json").json["rows"]) == 3


def test_jobs_and_models_are_listed_by_what_they_took(shell: Shell) -> None:
    spent(shell, job="small", model="a")
    for _ in range(2):
        spent(shell, job="large", model="b")
    jobs = shell("usage", "--by", "job", "--json").json["rows"]
    assert [row["label"] for row in jobs] == ["memory_stage1 large", "memory_stage1 small"]
    models = shell("usage", "--by", "model", "--json").json["rows"]
    assert [(row["label"], row["requests"]) for row in models] == [("main b", 2), ("main a", 1)]


def test_a_person_reads_a_table_with_a_total(shell: Shell) -> None:
    spent(shell)
    spent(shell, settled=False)
    said = shell("usage", "--by", "model")
    assert said.code == 0
    head, row, total, *notes = said.out.splitlines()
    assert head.split()[:4] == ["model", "requests", "tokens", "in"]
    assert row.startswith("main m ")
    assert total.startswith("total ")
    assert "1,120" in total
    assert "1 answered, 1 pending" in total
    assert notes[0].startswith("1 request counted as estimated")
    assert "no prices are set" in notes[1]


def test_a_cost_that_is_not_known_is_not_told_as_none(shell: Shell) -> None:
    spent(shell)
    shell.write(lambda conn: conn.execute("UPDATE requests SET cost = 0"))
    assert "  ?  " in shell("usage").out.splitlines()[1]
    assert "  cost      not known: no prices are set for the provider\n" in shell("status").out
    prices = "prices = { input = 1.0, cached = 0.1, output = 5.0 }"
    shell.configure(f'[providers.here]\nkind = "openai-chat"\nbase_url = "http://127.0.0.1:9/v1"\n{prices}\n')
    assert "  0.0000  " in shell("usage").out.splitlines()[1]
    assert "  cost      0.00 USD, without a cap\n" in shell("status").out


def test_without_a_ledger_or_a_request_it_says_so_beside_a_daemon_too(shell: Shell) -> None:
    assert shell("usage").out == "no model was asked in the last 30 UTC days\n"
    with shell.held():
        said = shell("usage", "--json")
    assert (said.code, said.json["rows"], said.json["total"]["requests"]) == (0, [], 0)


def test_a_number_of_days_that_is_none_is_a_wrong_argument(shell: Shell) -> None:
    assert shell("usage", "--days", "0").code == 2
