"""Advice: which sentence a ledger earns, and which it must not get."""

from __future__ import annotations

from synthetic import add_log

from ascend_sim.report.advice import Facts, advise, gather_facts
from ascend_sim.report.ledger import PipeTotals, Totals, build_ledger
from ascend_sim.trace import Cause, Stall


def pipe(memory: dict[str, int] | None = None, instructions: int = 1, **causes: int) -> PipeTotals:
    memory = memory or {}
    if memory:
        causes["memory"] = sum(memory.values())
    busy, idle, cycles = causes.get("busy", 0), causes.get("idle", 0), sum(causes.values())
    return {
        "busy": busy, "wait": cycles - busy - idle, "idle": idle,
        "occupied": busy + causes.get("memory", 0), "instructions": instructions, "items": instructions,
        "bytes": 0, "utilization": busy / cycles, "causes": causes, "memory": memory,
    }  # fmt: skip


def core(**pipes: PipeTotals) -> Totals:
    return {"core0.aiv0": pipes}


def test_waiting_for_buffers_gets_the_second_buffer_and_what_it_can_win() -> None:
    totals = core(
        MTE2=pipe(busy=450, buffer=550), V=pipe(busy=300, flag=700), MTE3=pipe(busy=250, flag=750)
    )
    held = {"core0.aiv0": {"MTE2": 450, "V": 300}, "core0.aiv1": {"MTE2": 400, "V": 480}}
    (text,) = advise(totals, 1100, 100, Facts(held=held))
    assert "MTE2 waits 55 % of the kernel's time for a free buffer" in text
    assert "BUFFER_NUM 2" in text
    assert "V alone needs 48 % of it, so overlap can win at most 52 %" in text
    assert advise(totals, 1100, 100, Facts(held={"core0.aiv0": {"MTE2": 950}})) == []


def test_a_second_buffer_hides_latency_too_and_replaces_that_advice() -> None:
    totals = core(
        MTE2=pipe(busy=600, memory={"latency": 250}, buffer=150), V=pipe(busy=300, flag=700)
    )
    (text,) = advise(totals, 1000, 0, Facts(held={"core0.aiv0": {"MTE2": 600}}))
    assert "BUFFER_NUM 2" in text


def test_facts_are_read_from_the_log() -> None:
    facts = gather_facts(build_ledger(add_log()))
    # The synthetic items were issued at cycle 0, before their core began.
    assert facts.startup == {"core0.aiv0": 0}
    # A load holds the pipe while its bytes move (60) or until its successor may begin (20); a store 9.
    assert facts.held == {"core0.aiv0": {"MTE2": 60, "V": 35, "MTE3": 9}}
    log = add_log()
    log.cores[0].items[0].accept = 290  # held 170, less the 20 of its share
    assert gather_facts(build_ledger(log)).held["core0.aiv0"]["MTE2"] == 150
    for entry in log.cores[0].items:
        entry.issue = 130
    log.cores[0].stalls += [Stall(110, 125, Cause.SCALAR, 0), Stall(140, 148, Cause.SCALAR, 0)]
    facts = gather_facts(build_ledger(log))
    assert (facts.startup, facts.fetched) == ({"core0.aiv0": 30}, {"core0.aiv0": 8})


def test_overlap_is_no_advice_where_gm_is_the_limit() -> None:
    totals = core(
        MTE2=pipe(busy=200, memory={"share": 700}, buffer=100),
        V=pipe(busy=300, flag=600, buffer=100),
    )
    texts = advise(totals, 1000, 0, Facts(gm=0.8))
    assert len(texts) == 1
    assert "GM is the limit: the bytes alone take 80 % of the kernel's time" in texts[0]
    assert "cannot help" in texts[0]
    assert "at most 20 %" in texts[0]


def test_neighbours_on_the_path_to_gm_are_named_where_gm_itself_has_room() -> None:
    totals = core(MTE2=pipe(busy=200, memory={"share": 700}), V=pipe(busy=300, flag=600))
    texts = advise(totals, 1000, 0, Facts(gm=0.3))
    assert "MTE2 waits 78 % of the kernel's time because others move bytes too" in texts[0]
    assert "needed 30 % of the time" in texts[0]


def test_the_launch_comes_first_where_it_takes_most_of_the_time() -> None:
    totals = core(V=pipe(busy=100, launch=900), MTE2=pipe(busy=50, idle=50, launch=900))
    text, *_ = advise(totals, 1000, 900)
    assert text.startswith("The launch takes 90 % of the time")
    assert "more than 10 %" in text


def test_shares_leave_out_the_launch() -> None:
    totals = core(V=pipe(busy=100, barrier=100, launch=50))
    (text,) = advise(totals, 250, 50)
    assert text.startswith("V stands 50 % of the kernel's time at barriers")


def test_each_cause_has_its_sentence() -> None:
    expected = {
        "scalar": "nothing was issued to it",
        "bank_conflict": "same UB banks",
        "tail": "split the work more evenly",
        "cross_core": "for another core",
    }
    for cause, words in expected.items():
        (text,) = advise(core(V=pipe(busy=600, **{cause: 400})), 1000, 0)
        assert words in text
        assert "40 % of the kernel's time" in text
    totals = core(MTE2=pipe(busy=300, memory={"latency": 400, "l2_miss": 300}))
    latency, misses = advise(totals, 1000, 0)
    assert "MTE2 waits 40 % of the kernel's time for GM to answer" in latency
    assert "MTE2 waits 30 % of the kernel's time because its bytes are not in L2" in misses


def test_a_busy_pipe_is_told_that_only_less_work_helps() -> None:
    (text,) = advise(core(V=pipe(busy=950, flag=50)), 1000, 0)
    assert text.startswith(
        "V is occupied 95 % of the kernel's time: this kernel is close to the limit"
    )


def test_nothing_is_said_where_nothing_ran_or_nothing_stands_out() -> None:
    assert advise({}, 0, 0) == []
    assert advise(core(V=pipe(instructions=0, idle=1000)), 1000, 0) == []
    assert advise(core(V=pipe(busy=500, flag=500)), 1000, 0) == []


def test_at_most_two_sentences_the_weightiest_first() -> None:
    totals = core(V=pipe(busy=100, barrier=200, scalar=300, tail=400))
    texts = advise(totals, 1000, 0)
    assert len(texts) == 2
    assert "slowest one" in texts[0]
    assert "nothing was issued" in texts[1]


def test_a_long_start_is_not_taken_for_slow_issuing() -> None:
    totals = core(S=pipe(busy=1000), V=pipe(busy=300, scalar=700))
    (text,) = advise(totals, 1000, 0, Facts(startup={"core0.aiv0": 650}))
    assert text.startswith("65 % of the kernel's time goes by before the first instruction")
    texts = advise(totals, 1000, 0, Facts(startup={"core0.aiv0": 100}))
    assert len(texts) == 1
    assert "nothing to do for 60 % of the kernel's time" in texts[0]


def test_waiting_for_code_is_not_taken_for_slow_issuing() -> None:
    totals = core(S=pipe(busy=750, scalar=250), V=pipe(busy=600, scalar=400))
    (text,) = advise(totals, 1000, 0, Facts({"core0.aiv0": 100}, {"core0.aiv0": 250}))
    assert text.startswith(
        "25 % of the kernel's time cores wait for code that they run for the first time"
    )


def test_a_tail_that_the_launch_makes_is_no_uneven_work() -> None:
    totals = core(MTE2=pipe(busy=300, tail=600), V=pipe(busy=300, tail=600))
    assert any(
        "split the work more evenly" in text for text in advise(totals, 1000, 0, Facts(spread=0.5))
    )
    assert not any("evenly" in text for text in advise(totals, 1000, 0, Facts(spread=0.02)))


def test_cores_without_work_are_named_first_and_do_not_thin_the_other_shares() -> None:
    worker = {"V": pipe(busy=400, cross_core=600), "MTE2": pipe(busy=100, flag=900)}
    idler = {"V": pipe(busy=1, cross_core=999), "MTE2": pipe(busy=4, cross_core=996)}
    totals = {f"core{n}.aiv0": worker if n == 2 else idler for n in range(8)}
    work, cross = advise(totals, 1000, 0)
    assert work.startswith("7 of 8 vector cores have no work, or hardly any")
    assert "V waits 60 % of the kernel's time for another core" in cross
    half = {f"core{n}.aiv0": worker if n > 3 else idler for n in range(9)}
    assert not any("hardly any" in text for text in advise(half, 1000, 0))


def test_a_lone_core_and_a_kind_that_only_waits_are_no_cores_without_work() -> None:
    busy, waits = {"M": pipe(busy=400, flag=600)}, {"V": pipe(cross_core=1000)}
    assert not any(
        "hardly any" in text
        for text in advise({"core0.aic": busy, "core0.aiv0": waits, "core0.aiv1": waits}, 1000, 0)
    )
