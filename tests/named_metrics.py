"""Every metric that docs/ and docker/monitoring name is one of the program's, and every file and name of the code that
docs/architecture.md shows exists.
  python3 tests/named_metrics.py"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of a summary; Prometheus adds them.
PARTS = r"_(?:sum|count)$"
# What the page calls the reader's own code, and a name of CMake.
OTHERS = re.compile(r"NAME|YourSink|find_package")


def stale_names(page, sources):
    """`sources`: the text of each source by its path. A::b() is a name if one of them has A and b(."""
    for code in sorted(set(re.findall(r"`([^`\n]+)`", page))):
        if OTHERS.search(code):
            continue
        if re.fullmatch(r"[\w./-]+(/|\.(?:h|cpp|json|md))", code):
            known = (ROOT / code).exists() or any(ROOT.glob(f"[pst]*/**/{code}"))
        elif re.fullmatch(r"[\w:]+(\(.*\))?", code) and re.search(r"[A-Z_:(]", code):
            name, call, _ = code.partition("(")
            patterns = [rf"\b{part}\b" for part in name.split("::")]
            patterns[-1] += r"\(" if call else ""
            known = any(all(re.search(pattern, text) for pattern in patterns) for text in sources)
        else:
            continue
        if not known:
            yield code


def main():
    sources = [path.read_text() for top in ("snapshot", "map", "proxy") for path in sorted((ROOT / top).rglob("*.*"))
               if path.suffix in (".cpp", ".h")]
    everything = "".join(sources)
    wrong = []
    for folder in ("docs", "docker/monitoring"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".md", ".yml", ".yaml", ".json"):
                continue
            for name in sorted(set(re.findall(r"\btwscope_(\w+)", path.read_text()))):
                if f'"{re.sub(PARTS, "", name)}"' not in everything and f'"{name}"' not in everything:
                    wrong.append(f"{path.relative_to(ROOT)} names twscope_{name}, which there is not")
            for joined in re.findall(r"\bon\(\)", path.read_text()):
                wrong.append(f"{path.relative_to(ROOT)} joins by {joined}, which fails with a second instance")
    for code in stale_names((ROOT / "docs" / "architecture.md").read_text(), sources):
        wrong.append(f"docs/architecture.md names {code}, which there is not")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
