"""Words of a program that is written in Python: a word is a number that every processor has."""

import numbers

from . import _posattn
from .arguments import numbers_of
from .errors import Error, shown


class Term:
    """What a processor computes from its words: +, -, constant factors; of whole numbers also
    comparisons; `abs(word)`, and posattn's `minimum`, `maximum`, `where`, `relu`. It is a term of
    one round. Reading a changed word from another processor ends the round; set a word to the term
    before, to keep it."""

    __array_ufunc__ = None  # NumPy leaves the operators to us

    def _term(self):
        return self._value

    def __init__(self, value):
        self._value = value

    def __add__(self, other):
        return Term(self._term().add(_term(other)))

    __radd__ = __add__

    def __sub__(self, other):
        return Term(self._term().subtract(_term(other)))

    def __rsub__(self, other):
        return Term(_term(other).subtract(self._term()))

    def __neg__(self):
        return Term(self._term().scale(-1.0))

    def __mul__(self, factor):
        number = _number(factor)
        if number is None:
            what = "two words" if isinstance(factor, Term) else f"a word and {shown(factor)}"
            raise Error(f"a product of {what}", "a word times a constant")
        return Term(self._term().scale(number))

    __rmul__ = __mul__

    def __truediv__(self, divisor):
        number = _number(divisor)
        if not number:
            raise Error(f"a word divided by {shown(divisor)}", "a word divided by a constant")
        return Term(self._term().scale(1.0 / number))

    def __abs__(self):
        return Term(self._term().absolute())

    def __ge__(self, other):
        return Term(self._term().at_least(_term(other)))

    def __le__(self, other):
        return Term(_term(other).at_least(self._term()))

    def __gt__(self, other):
        return Term(_term(other).at_least(self._term()).negation())

    def __lt__(self, other):
        return Term(self._term().at_least(_term(other)).negation())

    def __eq__(self, other):
        return Term(self._term().equal(_term(other)))

    def __ne__(self, other):
        return Term(self._term().equal(_term(other)).negation())

    __hash__ = None

    def __bool__(self):
        raise Error("a word in an `if`, `while`, `and` or `not`",
                    "where(condition, a, b): the numbers are not known yet")


def _number(value):
    """The constant that Python's or NumPy's number is; None for anything else."""
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    return float(value) if isinstance(value, numbers.Real) else None


def _term(value):
    if isinstance(value, Term):
        return value._term()
    number = _number(value)
    if number is None:
        raise Error(f"{shown(value)} in a program", "a word or a number")
    return _posattn.Term(number)


class Word(Term):
    """A word of all processors. In a formula it means its value at this point of the program."""

    def __init__(self, builder, index, name):
        self._builder, self._index, self.name = builder, index, name

    def _term(self):
        return self._builder._compiled.value(self._index)

    def set(self, value, where=None, otherwise=None):
        """The word becomes `value` on every processor; with `where`, a function of the processor's
        number, only there, and `otherwise` (else what it was) elsewhere."""
        compiled = self._builder._compiled
        if where is None:
            compiled.set(self._index, _term(value))
        else:
            rest = self if otherwise is None else otherwise
            compiled.set_where(self._index, where, _term(value), _term(rest))

    def at(self, place, name=None):
        """What each processor i reads: this word of processor place(i), zero where there is none.
        A `name`, for traces, is that of one word."""
        return self._builder._receive(self, place, name)

    def send(self, to, permutation=False, name=None):
        """What each processor receives when all send this word to the processor that the word `to`
        names; with `permutation` every processor sends and receives."""
        return self._builder._send(self, to, permutation, name)

    def __repr__(self):
        return f"<word {self.name}>"


class Builder:
    """A program that is being written: `input` and `word` make words, `length` and `processors` say
    how many there are."""

    def __init__(self, name, length, processors=0):
        self._compiled = _posattn.Builder(name, length, processors)
        self._names = 0

    @property
    def length(self):
        return self._compiled.length

    @property
    def processors(self):
        return self._compiled.processors

    def input(self, name="x", type="real"):
        """An input: "real", "bit", or (low, high) for whole numbers."""
        return Word(self, self._compiled.input(name, type), name)

    def word(self, name, initial=(), type=None):
        """A word with first values by processor (none: zero). Without a type it has the type of
        what it is set to."""
        values = numbers_of("initial", initial)
        return Word(self, self._compiled.word(name, type, values), name)

    def _name(self, name, source):
        if name is not None:
            return name
        self._names += 1
        return f"{source.name}_heard{self._names}"

    def _check(self, word):
        if not isinstance(word, Word) or word._builder is not self:
            raise Error(repr(word) if isinstance(word, Word) else shown(word),
                        "a word of this program")

    def _receive(self, source, place, name):
        name = self._name(name, source)
        return Word(self, self._compiled.receive(name, source._index, place), name)

    def _send(self, source, to, permutation, name):
        self._check(to)
        name = self._name(name, source)
        return Word(self, self._compiled.send(name, source._index, to._index, permutation), name)

    def _finish(self, outputs, task):
        words = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        for place, word in enumerate(words):
            if isinstance(word, Term) and not isinstance(word, Word):
                words[place] = self.word(f"output{place}")
                words[place].set(word)
            self._check(words[place])
        return self._compiled.finish([word._index for word in words], task)


def minimum(a, b):
    """The smaller of two words or numbers."""
    return Term(_term(a).minimum(_term(b)))


def maximum(a, b):
    """The larger of two words or numbers."""
    return Term(_term(a).maximum(_term(b)))


def relu(a):
    """max(a, 0)"""
    return Term(_term(a).relu())


def where(condition, a, b):
    """`a` on the processors whose condition, a bit, is 1, else `b`."""
    return Term(_term(condition).select(_term(a), _term(b)))
