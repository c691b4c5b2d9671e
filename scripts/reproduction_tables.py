#!/usr/bin/env python3
"""Writes the tables of docs/reproduction.md, docs/lab/reproduction.md and README.md from results/.

No number in them is typed by hand.

    scripts/reproduction_tables.py            # after new results
    scripts/reproduction_tables.py --check    # exit 1 if a page differs (part of ./check)

A table stands between the lines <!-- NAME --> and <!-- /NAME -->.
"""

import csv
import json
import math
import pathlib
import re
import statistics
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reproduction.md"
NOTEBOOK = ROOT / "docs" / "lab" / "reproduction.md"
README = ROOT / "README.md"
NEIGHBOURS = ROOT / "docs" / "neighbours.md"
SHORT = {"cumulative-sum": "sum", "cumulative-min": "min", "cumulative-median": "median", "sort": "sort",
         "cumulative-max-subarray": "max-subarray"}
TASKS = ["cumulative-sum", "cumulative-min", "cumulative-median", "sort", "cumulative-max-subarray"]
SIZES = [5000, 10000, 20000, 30000, 40000, 50000]


def number(value):
    """Two digits, as short as they can be written: 7.8e-6, 0.0063, 0.20, 93, 1518, 6.0e39."""
    if value >= 1e6:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    if value >= 10 or value == 0:
        return f"{value:.0f}"
    return f"{value:#.2g}" if value >= 1e-3 else f"{value:.1e}".replace("e-0", "e-")


class Results:
    """Test medians (and numbers of runs) of one table with the columns of published.csv."""

    def __init__(self, file, experiment=None):
        self.points = {}
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        for row in csv.DictReader(lines):
            if row["split"] == "test" and experiment in (None, row["experiment"]):
                place = row["task"], row["architecture"], float(row["x"])
                self.points[place] = float(row["median"]), int(row["runs"])

    def cells(self, task, line, places, with_runs=False):
        found = [self.points.get((task, line, x)) for x in places]
        return ["" if point is None else
                number(point[0]) + (f" ({point[1]})" if with_runs else "") for point in found]

    def has(self, task, line):
        return any(place[:2] == (task, line) for place in self.points)

    def runs(self, line, tasks):
        counts = sorted({runs for (task, name, _), (_, runs) in self.points.items()
                         if name == line and task in tasks})
        return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"

    def growth(self, task, line):
        """Slope of log(median) against log(c) over c = 2..10, by least squares."""
        points = [(math.log(x), math.log(self.points[task, line, x][0])) for x in range(2, 11)]
        mean_x = sum(x for x, _ in points) / len(points)
        mean_y = sum(y for _, y in points) / len(points)
        slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum(
            (x - mean_x) ** 2 for x, _ in points)
        return f"c^{slope:.2f}"


def ours(name):
    return Results(ROOT / "results" / name / f"{name}.csv")


def published(experiment):
    return Results(ROOT / "experiments" / "published.csv", experiment)


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def value_range():
    own, theirs, places = ours("value-range"), published("value-range"), [1, 2, 5, 10]
    rows = []
    for task in TASKS:
        for line in ["positional", "standard"]:
            rows.append([f"{task}, {line}: ours", *own.cells(task, line, places),
                         own.growth(task, line)])
            if theirs.has(task, line):
                rows.append(["published", *theirs.cells(task, line, places),
                             theirs.growth(task, line)])
    return table(["test MSE, median of 10 runs", *[f"c = {c}" for c in places],
                  "growth, c = 2 to 10"], rows)


def value_range_homogeneous():
    own, with_biases, places = ours("value-range-homogeneous"), ours("value-range"), [1, 2, 5, 10]
    rows = [[f"{task}, {line}", *found.cells(task, line, places), found.growth(task, line)]
            for task in TASKS
            for line, found in [("positional", with_biases), ("homogeneous", own), ("standard-no-bias", own)]]
    return table(["test MSE, median of 10 runs", *[f"c = {c}" for c in places],
                  "growth, c = 2 to 10"], rows)


def by_scale(name, lines, tasks, places=(1, 4, 10)):
    own, theirs = ours(name), published(name.removesuffix("-tf32"))
    header = ["test MSE, median", "runs"]
    header += [f"{SHORT[task]}, c = {c}" for task in tasks for c in places]
    rows = []
    for line, label in lines.items():
        rows.append([label, own.runs(line, tasks)] +
                    [cell for task in tasks for cell in own.cells(task, line, places)])
        if theirs.has(tasks[0], line):
            rows.append(["published", theirs.runs(line, tasks)] +
                        [cell for task in tasks for cell in theirs.cells(task, line, places)])
    return table(header, rows)


def tf32_beside_fp32():
    tf32, fp32, places = ours("value-range-tf32"), ours("value-range"), [1, 2, 5, 10]
    rows = [[f"{task}, {line}", *[" / ".join(pair) for pair in zip(tf32.cells(task, line, places),
                                                                   fp32.cells(task, line, places))]]
            for task in TASKS for line in ["positional", "standard"]]
    return table(["test MSE, median of 10 runs, tf32 / fp32", *[f"c = {c}" for c in places]], rows)


# Lines of `kinds` that satisfy f(c x) = c f(x), as `posattn scale` derives.
HOMOGENEOUS = {"homogeneous", "scale-free", "scale-free-joint", "standard-wrapped", "hard-rope", "relu-rows", "kernel",
               "spiking-scores"}


def kinds():
    """Medians at c = 1 and 10 by line, and their geometric mean growth over the tasks."""
    own = ours("kinds")
    tasks = [task for task in TASKS if own.has(task, "positional")]
    lines = list(dict.fromkeys(line for _, line, _ in own.points))
    rows = []
    for line in lines:
        pairs = [[own.points.get((task, line, c)) for c in (1, 10)] for task in tasks]
        known = [(pair[0][0], pair[1][0]) for pair in pairs if None not in pair]
        finite = all(math.isfinite(error) for pair in known for error in pair)
        growth = math.exp(statistics.fmean(math.log(b / a) for a, b in known)) if finite else math.inf
        cells = [", ".join(number(point[0]) if math.isfinite(point[0]) else "overflow" for point in pair)
                 if None not in pair else "" for pair in pairs]
        counts = {point[1] for pair in pairs for point in pair if point}
        rows.append([f"`{line}`", *cells, "yes" if line in HOMOGENEOUS else "no",
                     f"{growth:,.0f}" if growth < 1e6 else f"{growth:.0e}".replace("e+0", "e") if math.isfinite(growth) else "overflow",
                     str(min(counts))])
    return table(["c = 1, c = 10", *[SHORT[task] for task in tasks], "f(c x) = c f(x)", "growth", "runs"], rows)


def lines_by_task(name, places, head):
    """A row for each line, in a cell the medians of a task at the places."""
    own = ours(name)
    lines = list(dict.fromkeys(line for _, line, _ in own.points))
    tasks = [task for task in TASKS if own.has(task, lines[0])]
    rows = [[f"`{line}`", *[", ".join(own.cells(task, line, places)) for task in tasks]] for line in lines]
    return table([head, *[SHORT[task] for task in tasks]], rows)


def kinds_k_hop():
    own, places = ours("kinds-k-hop"), [0, 1, 2, 3]
    rows = [[f"`{line}`", *own.cells("k-hop", line, places)]
            for line in dict.fromkeys(line for _, line, _ in own.points)]
    return table(["cross-entropy, median, k", *map(str, places)], rows)


def by_axis(name, axis, tasks, places, lines=("positional", "standard"), suffix=""):
    own, theirs = ours(name + suffix), published(name)
    rows = []
    for task in tasks:
        for line in lines:
            if not own.has(task, line):
                continue
            label = f"{task}, {line}" if len(tasks) > 1 else line
            rows.append([f"{label}: ours (runs)", *own.cells(task, line, places, with_runs=True)])
            rows.append(["published (10 runs)", *theirs.cells(task, line, places)])
    return table([axis, *[f"{x:,}" for x in places]], rows)


def variable_length():
    own, theirs, places = ours("variable-length-epochs200"), published("variable-length"), [1, 2, 5, 10]
    rows = []
    for line in ["positional", "standard"]:
        rows.append([f"{line}: ours, 200 epochs, {own.runs(line, ['cumulative-sum'])} runs",
                     *own.cells("cumulative-sum", line, places), own.growth("cumulative-sum", line)])
        rows.append(["published, 2001 epochs, 10 runs",
                     *theirs.cells("cumulative-sum", line, places),
                     theirs.growth("cumulative-sum", line)])
    return table(["cumulative-sum, test MSE, median", *[f"c = {c}" for c in places],
                  "growth, c = 2 to 10"], rows)


def mixed_type():
    own, theirs, places = ours("mixed-type-epochs500"), published("mixed-type"), [1, 2, 5, 10]
    rows = []
    for task in ["mixed-min", "mixed-sum", "mixed-multitask"]:
        for line in ["positional", "standard", "query-blind"]:
            label = line if line == "query-blind" else f"{line}: ours"
            rows.append([f"{task}, {label}", *own.cells(task, line, places)])
            if theirs.has(task, line):
                rows.append(["published (10 runs)", *theirs.cells(task, line, places)])
        if theirs.has(task, "gpt2"):
            rows.append([f"{task}, GPT-2 large, fine-tuned: published (10 runs)",
                         *theirs.cells(task, "gpt2", places)])
    return table(["test MSE, median of 3 runs", *[f"c = {c}" for c in places]], rows)


def medians_by_depth(name, line, axis, x):
    """{layers: median cross-entropy of a test axis} of the runs behind a table."""
    found = {}
    for text in (ROOT / "results" / name / "runs.jsonl").read_text().splitlines():
        run = json.loads(text)
        if run["settings"].get("architecture", "positional") != line:
            continue
        found.setdefault(run["settings"]["depth"], []).extend(
            row["value"] for row in run["rows"] if row["split"] == "test" and
            (row["axis"], row["x"], row["metric"]) == (axis, x, "cross_entropy"))
    return {depth: statistics.median(values) for depth, values in found.items()}


def k_hop_codes():
    depths = [1, 2, 3, 4, 6, 8]
    rows = []
    for name, kind in [("k-hop-epochs32", "learned codes"), ("k-hop-codes-epochs32", "fixed codes")]:
        for line in ["positional", "standard"]:
            for x, letters in enumerate(["letters of training", "unseen letters"]):
                medians = medians_by_depth(name, line, "letters", x)
                rows.append([f"{line}, {kind}, {letters}", *[number(medians[d]) for d in depths]])
    return table(["test cross-entropy, median of 3 runs, layers", *map(str, depths)], rows)


def k_hop_length():
    own, lengths = ours("k-hop-length-epochs32"), [12, 25, 50, 99]
    rows = []
    for line in ["standard-2", "standard-3", "positional-2", "positional-4", "positional-6",
                 "positional-8"]:
        kind, depth = line.split("-")
        rows.append([f"{kind}, {depth} layers", *own.cells("k-hop", line, lengths)])
    return table(["wrong letters at k = 1, median of 3 runs, tokens n", *map(str, lengths)], rows)


def k_hop_small():
    trained, unseen = ours("k-hop-small"), ours("k-hop-small-unseen")
    depths = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16]
    rows = []
    for words, results in [("letters of training", trained), ("letters never trained", unseen)]:
        for line in ["positional", "standard"]:
            rows.append([f"{line}, {words}", *results.cells("k-hop", line, depths)])
    return table(["cross-entropy, median of 3 runs, layers", *map(str, depths)], rows)


def k_hop_settings():
    results, hops = ours("k-hop-settings-error"), [0, 1, 2, 3]
    kinds = {"": "all settings of k-hop-small", "-no-norm": "no LayerNorm", "-repeat": "50,000 samples that repeat",
             "-constant-rate": "a constant rate of 5e-4", "-99": "99 letters"}
    rows = [[f"{line}, {words}", *results.cells("k-hop", line + kind, hops)]
            for line in ["standard", "positional"] for kind, words in kinds.items()]
    return table(["share of wrong letters, median of 3 runs, k", *map(str, hops)], rows)


def samples_depth(experiment, suffix, task, measure, depths, sizes):
    results = ours(experiment + suffix)
    rows = [[f"{line}, {depth} layer{'s' if depth > 1 else ''}", *results.cells(task, f"{line}-{depth}", sizes)]
            for line in ["positional", "standard"] for depth in depths]
    return table([f"{measure}, median of 3 runs, training samples", *map(str, sizes)], rows)


# Figure of the paper, experiment, its view that shows the figure, what is recorded, in words.
FIGURES = [
    ("2", "sample-count", "", "-tf32", "tf32"),
    ("2", "sample-count", "", "", "fp32"),
    ("3", "k-hop", "", "", "fp32"),
    ("3", "k-hop", "", "-epochs32", "a quarter of the steps, fp32"),
    ("3, at length 30", "k-hop-small", "", "", "fp32"),
    ("4", "value-range", "", "", "fp32"),
    ("4", "value-range", "", "-tf32", "tf32"),
    ("5", "k-hop", "k-hop-unseen", "", "fp32"),
    ("5", "k-hop", "k-hop-unseen", "-epochs32", "a quarter of the steps, fp32"),
    ("5, at length 30", "k-hop-small", "k-hop-small-unseen", "", "fp32"),
    ("6", "mixed-type", "", "-epochs500", "a quarter of the epochs, fp32"),
    ("6, against samples", "mixed-type-samples", "", "", ""),
    ("6, GPT-2 large", "mixed-type-gpt2", "", "-gpt2-large", ""),
]


def steps_of(settings):
    """The defaults are those of posattn train."""
    samples, batch = settings.get("samples", 30000), settings.get("batch", 1000)
    return -(-samples // batch) * settings.get("epochs", 2001)


def planned(experiment):
    """Runs of an experiment's file and the steps of all of them."""
    file = tomllib.loads((ROOT / "experiments" / f"{experiment}.toml").read_text())
    first, last = map(int, file["seeds"].split(".."))
    axis, seeds = file["axis"], last - first + 1
    values = [{}] if axis["key"].startswith("test-") else [{axis["key"]: x} for x in axis["values"]]
    points = [file["settings"] | line | value for line in file["lines"] for value in values]
    each = len(file["tasks"]) * seeds
    return each * len(points), each * sum(map(steps_of, points))


def recorded(folder):
    """Finished runs of a results folder and the steps of all of them."""
    file = ROOT / "results" / folder / "runs.jsonl"
    runs = map(json.loads, file.read_text().splitlines()) if file.exists() else []
    steps = [run["steps"] for run in runs if run["status"] != "failed"]
    return len(steps), sum(steps)


def agreement(experiment, folder):
    """By the rule of posattn compare, in the words of a cell."""
    rows = [row for row in csv.DictReader(line for line in
                (ROOT / "experiments" / "published.csv").read_text().splitlines() if line[0] != "#")
            if row["experiment"] == experiment and row["split"] == "test" and row["architecture"] != "gpt2"]
    file = ROOT / "results" / folder / f"{folder}.csv"
    own = Results(file).points if file.exists() else {}
    there = [(own[place][0], row) for row in rows
             if (place := (row["task"], row["architecture"], float(row["x"]))) in own]
    agreeing = sum(float(row["min"]) / 2 <= median <= 2 * float(row["max"]) or
                   1 / 3 <= median / float(row["median"]) <= 3 for median, row in there)
    if not rows:
        return "none published as numbers"
    return f"{agreeing} of {len(there)}" + (f"; {len(rows)} published" if len(there) < len(rows) else "")


def status_rows(figures):
    """Figure, experiment, in words how it was run, runs done, share of the steps, agreement."""
    for figure, experiment, view, suffix, words in figures:
        shown = view or experiment
        runs, steps = planned(experiment)
        done, trained = recorded(shown + suffix)
        share = 100 * trained / steps
        percent = f"{share:.0f} %" if share == 0 or share >= 10 else f"{share:.1f} %"
        points = agreement(shown, shown + suffix) if done else "not run"
        yield figure, shown, words, f"{done} of {runs}", percent, points


def status():
    rows = [[figure, f"`{shown}`" + (f", {words}" if words else ""), *rest]
            for figure, shown, words, *rest in status_rows(FIGURES)]
    return table(["figure", "experiment", "runs done", "of all steps", "points that agree with the published"], rows)


def brief_status():
    """One row for each figure: of what is recorded, that with the most runs."""
    rows = {}
    for figure, shown, words, done, percent, points in status_rows(FIGURES):
        count = int(done.split()[0])
        if figure not in rows or count > rows[figure][0]:
            rows[figure] = count, [f"{figure}: {shown}", done, percent, words or "none yet", points]
    return table(["figure of the paper", "runs done", "of all steps", "settings", "points that agree"],
                 [row for _, row in rows.values()])


TABLES = {
    "status": status,
    "kinds": kinds,
    "mixed-scales": lambda: lines_by_task("mixed-scales", [0.5, 1, 2], "x = 0.5, 1, 2"),
    "kinds-length": lambda: lines_by_task("kinds-length", [4, 8, 16, 64], "n = 4, 8, 16, 64"),
    "kinds-k-hop": kinds_k_hop,
    "brief-status": brief_status,
    "value-range": value_range,
    "k-hop-small": k_hop_small,
    "k-hop-settings": k_hop_settings,
    "samples-depth-k-hop": lambda: samples_depth("samples-depth-k-hop", "", "k-hop", "cross-entropy", [1, 3, 6],
                                                 [640, 1600, 6400, 16000, 64000]),
    "samples-depth-sum": lambda: samples_depth("samples-depth-sum", "-tf32", "cumulative-sum", "test MSE",
                                               [1, 2, 4, 8], [300, 1000, 3000, 10000, 30000]),
    "value-range-tf32": tf32_beside_fp32,
    "value-range-homogeneous": value_range_homogeneous,
    "variants": lambda: by_scale("variants", {
        "m5": "m5 (positional)",
        "direct": "direct: a learned score matrix",
        "m0": "m0 (standard)",
        "rope": "rope: m0 with RoPE",
        "m1": "m1: attention from positions, but positions in the input too",
        "m3": "m3: attention from values and positions, values alone in the input",
        "m4": "m4: attention from values with RoPE, values alone in the input",
        "m2": "m2: no positions at all",
    }, ["cumulative-sum", "sort"]),
    "encodings": lambda: by_scale("encodings", {
        "positional": "positional, one-hot",
        "positional-binary": "positional, binary (4 columns)",
        "positional-sinusoidal": "positional, sinusoidal (2 columns)",
        "standard": "standard, one-hot",
        "standard-binary": "standard, binary",
        "standard-sinusoidal": "standard, sinusoidal",
    }, ["cumulative-sum"], (1, 2, 4, 10)),
    "variants-tf32": lambda: by_scale("variants-tf32", {
        "m5": "m5 (positional)",
        "direct": "direct",
        "m1": "m1: positions in the input too",
        "m0": "m0 (standard)",
    }, TASKS, (10,)),
    "encodings-tf32": lambda: by_scale("encodings-tf32", {
        "positional": "positional, one-hot",
        "positional-binary": "positional, binary",
        "positional-sinusoidal": "positional, sinusoidal",
    }, TASKS, (1, 10)),
    "sample-count-tf32": lambda: by_axis("sample-count", "test MSE at c = 1, tf32, training samples",
                                         TASKS, SIZES, suffix="-tf32"),
    "sample-count-outside-tf32": lambda: by_axis(
        "sample-count-outside", "test MSE at c = 3, tf32, training samples", TASKS, SIZES, ["positional"], "-tf32"),
    "sample-count-outside-standard-tf32": lambda: by_axis(
        "sample-count-outside", "test MSE at c = 3, tf32, training samples",
        ["cumulative-sum", "cumulative-min"], [5000, 10000, 20000, 30000, 40000], ["standard"],
        "-tf32"),
    "input-length-tf32": lambda: by_axis("input-length", "test MSE at c = 3, tf32, n", TASKS,
                                         [2, 4, 8], ["positional"], "-tf32"),
    "sample-count-outside": lambda: by_axis("sample-count-outside", "test MSE at c = 3, fp32, training samples",
                                            TASKS, SIZES, ["standard"]),
    "input-length": lambda: by_axis("input-length", "cumulative-min, test MSE at c = 3, n",
                                    ["cumulative-min"], [2, 4, 8, 16, 32]),
    "variable-length": variable_length,
    "k-hop-codes": k_hop_codes,
    "k-hop-length": k_hop_length,
    "mixed-type": mixed_type,
    "small-standard": lambda: by_axis("small-standard",
                                      "test MSE at c = 10, hidden units",
                                      ["cumulative-sum", "cumulative-min"], [2, 4, 8, 16],
                                      ("1-layer", "4-layers")),
}


def filled(page, names):
    text = page.read_text()
    for name in names:
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        if not pattern.search(text):
            sys.exit(f"error: {page.name} has no place <!-- {name} --> ... <!-- /{name} -->")
        text = pattern.sub(lambda found: f"{found[1]}{TABLES[name]()}\n{found[2]}", text)
    return text


def main():
    short = ["status", "value-range", "k-hop-small"]
    of_kinds = ["kinds", "mixed-scales", "kinds-length", "kinds-k-hop"]
    for page, names in [(PAGE, short), (NOTEBOOK, TABLES.keys() - {*short, "brief-status", *of_kinds}), (README, ["brief-status"]),
                        (NEIGHBOURS, of_kinds)]:
        text = filled(page, names)
        if "--check" not in sys.argv[1:]:
            page.write_text(text)
        elif text != page.read_text():
            sys.exit(f"error: the tables of {page.relative_to(ROOT)} are not those of results/; "
                     "run scripts/reproduction_tables.py")


if __name__ == "__main__":
    main()
