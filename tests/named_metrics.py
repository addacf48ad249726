"""Every metric that docs/ and docker/monitoring name is one of the program's.
  python3 tests/named_metrics.py"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of a summary; Prometheus adds them.
PARTS = r"_(?:sum|count)$"


def main():
    sources = "".join(path.read_text() for path in sorted(ROOT.glob("proxy/**/*.*"))
                      if path.suffix in (".cpp", ".h"))
    wrong = []
    for folder in ("docs", "docker/monitoring"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".md", ".yml", ".yaml", ".json"):
                continue
            for name in sorted(set(re.findall(r"\btwscope_(\w+)", path.read_text()))):
                if f'"{re.sub(PARTS, "", name)}"' not in sources and f'"{name}"' not in sources:
                    wrong.append(f"{path.relative_to(ROOT)} names twscope_{name}, which there is not")
            for joined in re.findall(r"\bon\(\)", path.read_text()):
                wrong.append(f"{path.relative_to(ROOT)} joins by {joined}, which fails with a second instance")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
