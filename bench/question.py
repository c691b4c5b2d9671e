#!/usr/bin/env python3
"""Does a model of mixed inputs read the question? On symbols that training shows.

  bench/question.py min runs/mixed-min/standard-seed0     # also: sum, max

`posattn evaluate --axis swapped=0,1` asks with symbols that training never shows; this asks with those
of training. For new prompts: the squared error of the best answer that ignores which four categories
are asked about, of the model, and of the model when the prompt asks about four others.
"""

import argparse
import itertools
import random
import statistics
import subprocess

SYMBOLS = "ABDEGHIJKLMNOPQRSTUV"
ANSWERS = {"min": min, "sum": sum, "max": max}
CATEGORIES, ASKED, DISTRACTORS = 8, 4, 2


class Prompt:
    """Drawn as by `draw_prompt`: prices in a range inside a range inside [0, 5]."""

    def __init__(self, rng):
        self.symbols = sorted(rng.sample(SYMBOLS, CATEGORIES))
        outer = sorted(rng.uniform(0, 5) for _ in range(2))
        inner = sorted(rng.uniform(*outer) for _ in range(2))
        self.prices = [rng.uniform(*inner) for _ in range(CATEGORIES)]
        self.places = sorted(rng.sample(range(CATEGORIES + DISTRACTORS), DISTRACTORS))
        self.distractors = [rng.choice("+-") + symbol
                            for symbol in rng.sample(self.symbols, DISTRACTORS)]
        self.asked, self.other = (rng.sample(range(CATEGORIES), ASKED) for _ in range(2))

    def text(self, word, asked):
        items = [[f"Cat{symbol}", f"{price:.6f}"] for symbol, price in zip(self.symbols, self.prices)]
        for place, distractor in zip(self.places, self.distractors):
            items.insert(place, [f"Cat{distractor}"])
        names = [f"Cat{self.symbols[i]}" for i in asked]
        return (f"{', '.join(part for item in items for part in item)}. Find {word} of categories "
                f"{', '.join(names[:-1])} and {names[-1]}.")

    def answer(self, word, asked):
        return ANSWERS[word]([self.prices[i] for i in asked])

    def blind(self, word):
        return statistics.mean(self.answer(word, choice)
                               for choice in itertools.combinations(range(CATEGORIES), ASKED))


def error(found, expected):
    return statistics.mean((a - b) ** 2 for a, b in zip(found, expected, strict=True))


def predicted(options, model, lines):
    shown = subprocess.run([options.posattn, "predict", model], input="\n".join(lines) + "\n",
                           text=True, check=True, stdout=subprocess.PIPE)
    return [float(line.split()[-1]) for line in shown.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", choices=ANSWERS)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--prompts", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--posattn", default="posattn")
    options = parser.parse_args()
    word, rng = options.word, random.Random(options.seed)
    prompts = [Prompt(rng) for _ in range(options.prompts)]
    answers = [prompt.answer(word, prompt.asked) for prompt in prompts]
    print(f"query-blind {error([prompt.blind(word) for prompt in prompts], answers):.5f}")
    for model in options.models:
        asked = predicted(options, model, [prompt.text(word, prompt.asked) for prompt in prompts])
        other = predicted(options, model, [prompt.text(word, prompt.other) for prompt in prompts])
        print(f"{model}: {error(asked, answers):.5f}, with another question "
              f"{error(other, answers):.5f}")


if __name__ == "__main__":
    main()
