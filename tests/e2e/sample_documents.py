"""Documents of the editor tests. The cursor is at the end of each."""

CART = '''class Cart:
    """Items that somebody wants to buy."""

    def __init__(self) -> None:
        self.prices: dict[str, float] = {}

    def add(self, name: str, price: float) -> None:
        self.prices[name] = price

    def remove(self, name: str) -> None:
        '''
LIBRARY = '''class Library:
    """Books that can be lent, each some number of times."""

    def __init__(self) -> None:
        self.copies: dict[str, int] = {}
        self.readers: dict[str, list[str]] = {}

    def lend(self, title: str, reader: str) -> bool:
        """Lend a copy to a reader; False if all copies are out."""
        '''
ADD = "def add(a, b):\n    return a + b\n\n\n"
MULTIPLY = "def add(a, b):\n    return a + b\n\n\ndef multiply(a, b):\n    "
USES = """

def load(path):
    return jsonlib.load(path)


def loads(text):
    return jsonlib.loads(text)


def dumps(value):
    return jsonlib.dumps(value)
"""
RENAMED = USES.replace("jsonlib", "fastjson")
