"""A script whose functions use globals only in nested classes and functions, each in another way."""

import subprocess
import sys
from typing import Any

TEXT = """
import concurrent.futures.thread
import dataclasses
import enum
import xml.dom.minidom

G, H = 7, [1, 2]

class Colour(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Point:
    x: int

class Meta(type):
    pass

def deco(f):
    return f

def default():
    return G

def class_body(x):
    class A:
        y = G
    return A.y

def comprehension_in_a_class(x):
    class A:
        y = [H[i] + G for i in range(2)]
    return A.y

def generator_in_a_class(x):
    class A:
        y = sum(v * G for v in H)
    return A.y

def lambda_in_a_class(x):
    class A:
        f = staticmethod(lambda: G)
    return A.f()

def class_in_a_class(x):
    class A:
        class B:
            y = G
    return A.B.y

def default_of_a_method(x):
    class A:
        def m(self, v=G, *, w=H):
            return v, w
    return A().m()

def decorator_of_a_method(x):
    class A:
        @deco
        def m(self):
            return 1
    return A().m()

def annotation_of_a_method(x):
    class A:
        def m(self, v: Point) -> Colour:
            pass
    return [each.__name__ for each in A.m.__annotations__.values()]

def annotation_in_a_class(x):
    class A:
        v: Point = None
    return A.__annotations__["v"].__name__

def field_of_a_dataclass(x):
    @dataclasses.dataclass
    class A:
        v: int = dataclasses.field(default_factory=default)
    return A().v

def member_of_an_enum(x):
    class E(enum.Enum):
        A = G
    return E.A.value

def bases_of_a_class(x):
    class A(Point, metaclass=Meta):
        pass
    return A(1).x, type(A).__name__

def default_of_a_function(x):
    def g(v=G):
        return v
    return g()

def decorator_of_a_function(x):
    @deco
    def g():
        return 1
    return g()

def annotation_of_a_function(x):
    def g(v: Point):
        pass
    return g.__annotations__["v"].__name__

def match_statement(x):
    match Point(3), Colour.RED:
        case Point(x=3), Colour.RED:
            return G

def match_statement_in_a_class(x):
    class A:
        match Colour.RED:
            case Colour.RED:
                y = G
        match Point(3):
            case Point(x=z):
                pass
    return A.y, A.z

def class_variable_of_the_same_name(x):
    class A:
        G = G + 1
        h = G
    return A.h

def assignment_under_a_condition(x):
    class A:
        if x > 1:
            G = 0
        y = G
    return A.y

def assignment_that_may_fail(x):
    class A:
        try:
            y = 1 // (x - 1)
            G = 0
        except ZeroDivisionError:
            y = G
    return A.y

def deleted_class_variable(x):
    class A:
        G = 0
        del G
        y = G
    return A.y

def global_that_a_class_assigns(x):
    class A:
        global NEW
        NEW = G
    return NEW

def submodule_in_a_class(x):
    class A:
        y = xml.dom.minidom.parseString("<a/>").documentElement.tagName
    return A.y

def submodule_in_a_comprehension(x):
    return [xml.dom.minidom.parseString("<a/>").documentElement.tagName for _ in range(x)]

def submodule_in_a_function(x):
    return (lambda: concurrent.futures.thread.ThreadPoolExecutor.__name__)()
"""


def definitions() -> dict[str, Any]:
    """The script's globals, as they are in a started script and in the cells of a notebook."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(TEXT, namespace)
    return namespace


NAMES = [
    line.removeprefix("def ").partition("(")[0]
    for line in TEXT.partition("def class_body")[2].splitlines()
    if line.startswith("def ")
]
NAMES.insert(0, "class_body")

_CALL = "import pickle, sys; print(repr(pickle.load(sys.stdin.buffer)(1)))"


def run_elsewhere(data: bytes) -> str:
    """Unpickle a function in a process without the script, call it with 1, and return the `repr` of its result."""
    command = [sys.executable, "-c", _CALL]
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout.decode().strip()
