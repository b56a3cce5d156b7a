"""`make mutants`: break a random sample of the expressions of the package's inner modules.

mutmut changes one expression of a function and runs the tests that reach this function until one
fails. Each surviving change is printed as a diff: either a test is missing, or the change makes no
difference. Files and tests are set in `[tool.mutmut]` of pyproject.toml.

python -m tests.mutants --sample 300 --seed 9 --jobs 2
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files
from mutmut.utils.format_utils import get_mutant_name

KILLED = ("killed", "timeout", "segfault")


def main() -> None:
    """Draw, run, and print the survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    paths = {
        get_mutant_name(path, name): path
        for path in sorted(walk_mutatable_files())
        for name in mutate_file_contents(str(path), path.read_text(encoding="utf-8")).mutant_names
    }
    drawn = sorted(random.Random(options.seed).sample(sorted(paths), options.sample))
    shutil.rmtree("mutants", ignore_errors=True)  # mutmut keeps which test reaches which function
    mutmut = str(Path(sys.executable).with_name("mutmut"))
    source = Path("mutants/src").absolute()  # for the processes that tests start
    source.mkdir(parents=True)
    environment = os.environ | {"PYTHONPATH": str(source)}
    command: list[str | Path] = [mutmut, "run", "--max-children", str(options.jobs), *drawn]
    if subprocess.run(command, env=environment, check=False).returncode:
        sys.exit("mutmut failed")
    found: Counter[str] = Counter()
    for name in drawn:
        data = SourceFileMutationData(path=paths[name])
        data.load()
        status = status_by_exit_code[data.exit_code_by_key[name]]
        found[status] += 1
        if status not in KILLED:
            print(f"\n# {name}: {status}\n{get_diff_for_mutant(name, path=paths[name])}")
    killed = sum(found[status] for status in KILLED)
    print(f"{killed} of {len(drawn)} of {len(paths)} mutants killed (seed {options.seed}); {found}")


if __name__ == "__main__":
    main()
