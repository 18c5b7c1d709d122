"""`python -m tests.torture --minutes N --seed S`: all parts in turn; the last line is one JSON object."""

from __future__ import annotations

import argparse
import json
import random
import sys

from tests.torture.campaign import PARTS, replay, run_campaign


def main() -> int:
    """Attack; the result is 0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long it attacks (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of all rounds; a random one is printed")
    parser.add_argument("--part", action="append", choices=[part.name for part in PARTS], help="this part only")
    parser.add_argument("--round", type=int, metavar="SEED", help="repeat one round of --part")
    parser.add_argument("--jobs", type=int, default=2, help="rounds at once")
    parser.add_argument("--busy", action="store_true", help="count no deafness that other programs may cause")
    options = parser.parse_args()
    chosen = [part for part in PARTS if not options.part or part.name in options.part]
    if options.round is not None:
        tally = replay(chosen[0], options.round, is_busy=options.busy)
    else:
        seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
        tally = run_campaign(chosen, 60 * options.minutes, seed, options.jobs, is_busy=options.busy)
    print(json.dumps(tally.line()))
    return 1 if tally.total.findings else 0


if __name__ == "__main__":
    sys.exit(main())
