"""What .dockerignore and the COPY lines of docker/Dockerfile let through has all that CMake reads:
every folder that it adds, and of tests/ every file and folder that it names. Without docker.
  python3 tests/image_context.py"""
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = r"\$\{(?:CMAKE_CURRENT_SOURCE_DIR|CMAKE_CURRENT_LIST_DIR)\}/"
TOP = r"\$\{(?:PROJECT_SOURCE_DIR|CMAKE_SOURCE_DIR)\}/"


def is_sent(path, rules):
    """The last rule that matches counts, and one that matches a folder matches what is in it."""
    sent = True
    parts = path.split("/")
    for rule in rules:
        wanted = rule.startswith("!")
        pattern = rule.removeprefix("!").strip("/").split("/")
        if len(pattern) <= len(parts) and all(map(fnmatch.fnmatch, parts, pattern)):
            sent = wanted
    return sent


def lines_of(path):
    lines = map(str.strip, (ROOT / path).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def fill(folder, tracked):
    """Copies what the first stage of the image has."""
    rules = lines_of(".dockerignore")
    copied = [line.split()[1:-1] for line in lines_of("docker/Dockerfile")
              if line.startswith("COPY ") and "--from" not in line]
    sources = tuple(source for line in copied for source in line)
    for path in tracked:
        if is_sent(path, rules) and any(path == each or path.startswith(each + "/") for each in sources):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)


def named_in(text):
    """(path, from the top) of everything in a CMakeLists.txt that may be a path."""
    text = re.sub(r"#.*", "", text)
    for word in re.findall(r"[^\s()\"=;]+", text):
        name = re.sub(f"^(?:{HERE}|{TOP})", "", word)
        if "$" not in name and not name.startswith("/"):
            yield name, bool(re.match(TOP, word))


def complaints(folder, tracked):
    for path in (ROOT / each for each in tracked if each.endswith("CMakeLists.txt")):
        where = path.parent.relative_to(ROOT)
        text = path.read_text()
        for added in re.findall(r"^\s*add_subdirectory\(([\w./-]+)", text, re.MULTILINE):
            if not (folder / where / added / "CMakeLists.txt").exists():
                yield f"{where}/CMakeLists.txt adds {added}, which is not in the image"
        if where.parts[:1] != ("tests",):
            continue
        for name, is_top in named_in(text):
            named = pathlib.Path(name) if is_top else where / name
            if (ROOT / named).exists() and not (folder / named).exists():
                yield f"{where}/CMakeLists.txt names {name}, which is not in the image"


def main():
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, text=True,
                             stdout=subprocess.PIPE).stdout.splitlines()
    tracked = [path for path in tracked if (ROOT / path).is_file()]
    with tempfile.TemporaryDirectory() as folder:
        fill(pathlib.Path(folder), tracked)
        wrong = sorted(set(complaints(pathlib.Path(folder), tracked)))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
