"""Run laser_attention_grad: cube and vector cores hand blocks of scores to each other, round by round.

The backward of attention works on blocks of 128 x 128 scores. A cube core multiplies (S and dP, later dV, dK and dQ),
its two vector cores compute softmax and its derivative between; they hand the blocks over through GM, 16 a round, with
flag 2 (cube to vectors) and flag 3 (vectors to cube). A triangle of 6 rows of blocks has 24 places, folded so that all
rows are equally long; the three blocks above the diagonal own a place and are skipped.

    python examples/07_laser_attention_grad.py
    ascend-sim run examples/07_laser_attention_grad.py
    ascend-sim run laser_attention_grad --seq 768 --cores 1
"""

from ops import Context, find_operator

HEADS, SEQ = 2, 768


def main():
    """Run the operator on one core, on two and on three, and say what each run did."""
    operator = find_operator("laser_attention_grad")
    for cores in (1, 2, 3):
        run = operator.run({"heads": HEADS, "seq": SEQ}, Context(cores=cores))
        numbers = run.numerics
        assert numbers["passed"], "the library's own rule: 2^-7 * max(1, |golden|)"
        handover = run.summary["handover"]
        rounds, blocks = len(handover["rounds"]), handover["blocks_per_core"]
        print(
            f"cores {cores}: rounds {rounds}, blocks {blocks['fewest']} to {blocks['most']} a core"
        )
        explain(run, cores)


def explain(run, cores):
    """Print the work of each kind of core, and who waited in which round."""
    work = run.summary["phases"]["main"]["instructions"]
    for kind, pipes in (("aic", ("MTE2", "MTE1", "M", "FIX")), ("aiv", ("MTE2", "V", "MTE3"))):
        print(f"  {kind}: " + ", ".join(f"{pipe} {work[kind][pipe]}" for pipe in pipes))
    for entry in run.summary["handover"]["rounds"]:
        vectors, cube = entry["vectors_for_cube"]["mean"], entry["cube_for_vectors"]["mean"]
        who = "vector cores" if vectors > cube else "cube cores"
        print(
            f"  round {entry['round']}: {entry['active']} of {cores} have work, the {who} wait longer"
        )


if __name__ == "__main__":
    main()
