#!/usr/bin/env python3
"""Says which ops the survey (bench/ops) leaves out without a reason."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench/ops"))
sys.dont_write_bytecode = True

import coverage

if __name__ == "__main__":
    faults = coverage.faults()
    print(*[f"bench/ops does not survey {fault}" for fault in faults], sep="\n",
          end="\n" if faults else "")
    sys.exit(1 if faults else 0)
