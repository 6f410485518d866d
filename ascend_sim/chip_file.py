"""Chip files as plain data: YAML text, the chain of `extends`, and what to tell about a wrong key.

This module knows no key of a chip and no unit; `ascend_sim.config` gives the data its meaning.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from ascend_sim.errors import ConfigError

# libyaml where PyYAML was built with it: ten times faster, same result.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PACKAGE = Path(__file__).resolve().parent
_STRING_TAG = "tag:yaml.org,2002:str"
_MERGE_TAG = "tag:yaml.org,2002:merge"

KeyPath = tuple[str, ...]
Stamp = tuple[Path, int, int]


@dataclass(frozen=True, slots=True)
class Document:
    """One chip file: what it says itself, and where (`file:line`) each of its keys stands."""

    path: Path
    data: dict[str, Any]
    places: dict[KeyPath, str]

    def place(self, *at: str) -> str:
        """Return where a key stands, or the file for one that came through a merge key."""
        return self.places.get(at, str(self.path))

    def numbers(self) -> Iterator[tuple[KeyPath, float]]:
        """Yield the key path and value of every number outside `sources`."""
        yield from _numbers(self.data, ())


def config_dir() -> Path:
    """Return the folder of the shipped chip files: inside the wheel, else at the repository's root."""
    inside = _PACKAGE / "configs"
    return inside if inside.is_dir() else _PACKAGE.parent / "configs"


def shipped_chips() -> list[str]:
    """Return the names of the shipped chips, sorted; files that only serve as bases do not count."""
    return sorted(p.stem for p in config_dir().glob("*.yaml") if not p.stem.startswith("_"))


def find(name: str, beside: Path | None = None) -> Path:
    """Return the file of a chip name or path; `beside` is the file that says `extends: name`.

    A path starts at the folder of `beside`; a name is looked for there and then among the shipped
    files, in lower case as well. Raises `ConfigError`, with the nearest name, where there is none.
    """
    folder = beside.parent if beside else Path()
    if name.endswith((".yaml", ".yml")) or "/" in name or "\\" in name:
        path = folder / Path(name).expanduser()
        if is_file(path):
            return path
        raise ConfigError(f"{_said_by(beside)}no chip file {path}")
    for candidate in _candidates(name, beside):
        if is_file(candidate):
            return candidate
    chips = shipped_chips()
    hint = nearest(name.lower(), chips)
    raise ConfigError(
        f"{_said_by(beside)}no chip {name!r}{hint} (chips: {', '.join(chips)}; or the path of a .yaml file)"
    )


def read_chain(path: Path) -> list[Document]:
    """Read a chip file and those it extends, the outermost base first.

    Raises `ConfigError` for files that cannot be read, that are no YAML, or that extend themselves.
    """
    documents: list[Document] = []
    while True:
        trail = [document.path for document in documents]
        if any(path.samefile(seen) for seen in trail):
            names = " -> ".join(str(p) for p in [*trail, path])
            raise ConfigError(
                f"{documents[-1].place('extends')}: extends goes round in a circle: {names}"
            )
        document = read(path)
        documents.append(document)
        base = document.data.pop("extends", None)
        if base is None:
            return documents[::-1]
        if not isinstance(base, str):
            place = document.place("extends")
            raise ConfigError(
                f"{place}: extends: expected the name or path of a chip, got {base!r}"
            )
        path = find(base, beside=path)


def read(path: Path) -> Document:
    """Read one chip file. Raises `ConfigError` with file, line and column for what is no YAML."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    try:
        node = loader.get_single_node()
        places = dict(_places(path, node, ()))
        data = loader.construct_document(node) if node is not None else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        context = f" ({error.context})" if error.context else ""
        raise ConfigError(f"{where}: no valid YAML: {error.problem}{context}") from error
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise ConfigError(f"{path}:1: expected `key: value` lines, got {type(data).__name__}")
    return Document(path, data, places)


def stamps(paths: Iterable[Path]) -> list[Stamp]:
    """Return path, time of the last change and size of each file: equal stamps, same content."""
    return [_stamp(path) for path in paths]


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `over` in their place; sections merge key by key, at any depth."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = merge(old, value) if both else value  # type: ignore[arg-type]
    return merged


def is_file(path: Path) -> bool:
    """Return whether a path names a file; one that no file system could hold does not."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def nearest(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known word nearest to `word`, whatever its case; or nothing."""
    names = list(known)
    folded = {_folded(name): name for name in names}
    if _folded(word) in folded:
        return f"; did you mean {folded[_folded(word)]!r}?"
    matches = difflib.get_close_matches(word, names, n=1)
    matches += [folded[one] for one in difflib.get_close_matches(_folded(word), folded, n=1)]
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _folded(word: str) -> str:
    return word.lower().replace("_", "")


def complaints(
    error: ValidationError, model: type[BaseModel], places: Mapping[KeyPath, str], file: str
) -> Iterator[str]:
    """Yield one line for each thing wrong: place, key path, what is wrong, nearest valid key.

    `model` is the model that refused the data, `file` the place of a key that no file has.
    """
    # A key that is missing is often one that is misspelt: tell the misspelt one first.
    for entry in sorted(error.errors(), key=lambda entry: entry["type"] == "missing"):
        at = tuple(str(part) for part in entry["loc"] if part != "[key]")
        place = next((places[at[:n]] for n in range(len(at), 0, -1) if at[:n] in places), file)
        if entry["type"] == "extra_forbidden":
            text = f"unknown key{nearest(at[-1], _keys_at(model, at[:-1]))}"
        else:
            text = _complaint(entry["type"], entry["input"], entry.get("ctx", {}), entry["msg"])
        yield f"{place}: {'.'.join(at)}: {text}" if at else f"{place}: {text}"


def _complaint(kind: str, given: Any, context: Mapping[str, Any], default: str) -> str:
    match kind:
        case "missing":
            return "is missing, and neither this file nor one that it extends gives it"
        case "int_type" | "int_from_float":
            return f"expected a whole number, got {given!r}"
        case "float_type":
            return f"expected a number, got {given!r}{_yaml_number_hint(given)}"
        case "string_type":
            return f"expected text, got {given!r}"
        case "model_type" | "dict_type":
            return f"expected a section of `key: value` lines, got {given!r}"
        case "literal_error":
            return f"expected {context['expected']}, got {given!r}"
        case "value_error":
            return str(context["error"])
        case _:
            return f"{default[:1].lower()}{default[1:]}, got {given!r}"


def _yaml_number_hint(given: Any) -> str:
    try:
        float(given if isinstance(given, str) else "")
    except ValueError:
        return ""
    return " as text (YAML reads a number without quotes; an exponent needs a point and a sign: 1.0e+9)"


def _keys_at(model: Any, at: KeyPath) -> list[str]:
    for part in at:
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[part].annotation
        else:
            model = get_args(model)[1]
    return list(model.model_fields)


def _stamp(path: Path) -> Stamp:
    if not is_file(path):
        return (path, 0, 0)
    stat = path.stat()
    return (path, stat.st_mtime_ns, stat.st_size)


def _candidates(name: str, beside: Path | None) -> Iterator[Path]:
    if beside is not None:
        sibling = beside.parent / f"{name}.yaml"
        # A user's ascend910b1.yaml may extend the shipped one of the same name.
        if not (sibling.is_file() and sibling.samefile(beside)):
            yield sibling
    yield config_dir() / f"{name}.yaml"
    yield config_dir() / f"{name.lower()}.yaml"


def _said_by(beside: Path | None) -> str:
    return f"{beside}: extends: " if beside else ""


def _places(path: Path, node: yaml.Node | None, at: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.tag == _MERGE_TAG:
            continue
        if key.tag != _STRING_TAG:
            raise ConfigError(
                f"{path}:{line}: {'.'.join(at) or 'a key'}: keys are text, got {key.value!r}"
            )
        if key.value in seen:
            dotted = ".".join((*at, key.value))
            raise ConfigError(
                f"{path}:{line}: {dotted} stands twice, first in line {seen[key.value]}"
            )
        seen[key.value] = line
        inner = (*at, key.value)
        if len(inner) > 8:  # deeper than any chip file: an alias inside its own anchor
            raise ConfigError(f"{path}:{line}: {'.'.join(inner[:3])}… is nested too deep")
        yield inner, f"{path}:{line}"
        yield from _places(path, value, inner)


def _numbers(data: dict[str, Any], at: KeyPath) -> Iterator[tuple[KeyPath, float]]:
    for key, value in data.items():
        inner = (*at, key)
        if inner == ("sources",):
            continue
        if isinstance(value, dict):
            yield from _numbers(value, inner)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield inner, value
