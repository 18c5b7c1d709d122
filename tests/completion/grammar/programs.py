"""Hypothesis strategies for valid programs: small hand-written grammars, one for each kind of syntax."""

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b_1", "self", "ünï", "forx", "inn", "f", "rb", "truex"])
NUMBERS = st.sampled_from(["0", "1.5e-3", "0x1F", "10"])
STRINGS = st.sampled_from(['"s"', "'t'", '"a\\n\\"b"', '"#{[("', '""', '"é"'])


def python_expressions():
    def grow(inner):
        pair = st.tuples(inner, inner)
        return st.one_of(
            pair.flatmap(
                lambda p: st.sampled_from(["+", "**", " in ", " is not ", " and ", "//", "<="]).map(
                    lambda op: f"({p[0]}{op}{p[1]})"
                )
            ),
            pair.map(lambda p: f"f({p[0]}, k={p[1]})"),
            pair.map(lambda p: f"[{p[0]} for x in {p[1]}]"),
            pair.map(lambda p: f"({p[0]} if {p[1]} else None)"),
            pair.map(lambda p: f"{{{p[0]}: {p[1]}}}"),
            inner.map(lambda e: f"(lambda x, *y: {e})"),
            inner.map(lambda e: f"f'a{{x!r:>3}}b' [{e}:]"),
            inner.map(lambda e: f"(\n  {e},  # c\n)"),
        )

    return st.recursive(st.one_of(NAMES, NUMBERS, STRINGS), grow, max_leaves=6)


def indented(lines):
    return [f"    {line}" for line in lines]


def python_statements():
    simple = st.one_of(
        python_expressions().map(lambda e: [f"x = {e}"]),
        python_expressions().map(lambda e: [f"return {e}"]),
        st.just(["pass; y: int = 1"]),
        st.just(["# comment", "pass"]),
        st.just(['"""doc', "  string", '"""']),
        st.just(["import a.b as c"]),
        st.just(["x = 1 + \\", "    2"]),
    )

    def grow(inner):
        block = st.lists(inner, min_size=1, max_size=3).map(lambda bs: indented([line for b in bs for line in b]))
        return st.one_of(
            st.tuples(python_expressions(), block).map(lambda t: [f"if {t[0]}:", *t[1]]),
            st.tuples(block, block).map(lambda t: ["try:", *t[0], "except E as e:", *t[1]]),
            st.tuples(block, block).map(lambda t: ["for i in x:", *t[0], "", "else:", *t[1]]),
            block.map(lambda b: ["@d", "async def f(a, /, b: int = 1, *, c) -> T:", *b]),
            block.map(lambda b: ["class C(B):", "", *b]),
        )

    compound = st.recursive(simple, grow, max_leaves=6)
    return st.lists(compound, min_size=1, max_size=4).map(lambda bs: "\n".join(line for b in bs for line in b) + "\n")


def curly_statements(header, declaration):
    """Generate programs of the C family.

    Args:
        header: Returns a program with a given function body.
        declaration: Returns a simple statement with a given expression.
    """

    def grow_expression(inner):
        pair = st.tuples(inner, inner)
        return st.one_of(
            pair.flatmap(
                lambda p: st.sampled_from(["+", " * ", "<", ">>", " && ", "=="]).map(lambda op: f"({p[0]}{op}{p[1]})")
            ),
            pair.map(lambda p: f"g({p[0]}, {p[1]})"),
            inner.map(lambda e: f"a[{e}]"),
            inner.map(lambda e: f"b.c(/* {{ */ {e})"),
            inner.map(lambda e: f"(-{e})"),
        )

    leaves = st.sampled_from(["a", "b2", "1", "2.5", '"s{"', "fory", "iff", "ret"])
    expressions = st.recursive(leaves, grow_expression, max_leaves=6)
    simple = st.one_of(
        expressions.map(declaration),
        expressions.map(lambda e: f"g({e});"),
        st.just("return;"),
        st.just("// comment }\n;"),
    )

    def grow(inner):
        block = st.lists(inner, max_size=3).map(lambda s: "{\n" + "\n".join(s) + "\n}")
        return st.one_of(
            st.tuples(expressions, block).map(lambda t: f"if ({t[0]}) {t[1]}"),
            st.tuples(expressions, block, block).map(lambda t: f"if ({t[0]}) {t[1]} else {t[2]}"),
            st.tuples(expressions, block).map(lambda t: f"while ({t[0]}) {t[1]}"),
            block,
        )

    body = st.lists(st.recursive(simple, grow, max_leaves=8), max_size=4).map("\n".join)
    return body.map(header)


def json_values():
    texts = st.text(st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=("Cs", "Cc")), max_size=6)
    leaves = st.one_of(st.sampled_from(["1", "-2.5e3", "true", "null"]), texts.map(lambda t: f'"{t}"'))

    def grow(inner):
        return st.one_of(
            st.lists(inner, max_size=3).map(lambda vs: "[ " + ", ".join(vs) + "]"),
            st.lists(inner, max_size=3).map(lambda vs: "{" + ",".join(f'"k": {v}' for v in vs) + "}\n"),
        )

    return st.recursive(leaves, grow, max_leaves=8)


PROGRAMS = {
    "python": python_statements(),
    "json": json_values(),
    "javascript": curly_statements(lambda b: f"const h = async (x) => {{\n{b}\n}}\n", lambda e: f"let v = {e}"),
    "typescript": curly_statements(
        lambda b: f"function h<T>(x?: T): void {{\n{b}\n}}\n", lambda e: f"const v: Map<string, A[]> = {e} as B;"
    ),
    "typescriptreact": curly_statements(
        lambda b: f"export function H() {{\n{b}\nreturn <p a={{1}}>t</p>\n}}\n", lambda e: f"const v = {e}!;"
    ),
    "go": curly_statements(
        lambda b: "package p\nfunc h(x int) {\n" + b.replace("while (", "for (") + "\n}\n", lambda e: f"v := {e}"
    ),
    "rust": curly_statements(lambda b: f"fn h<'a>(x: &'a mut T) {{\n{b}\n}}\n", lambda e: f"let mut v = {e};"),
    "java": curly_statements(
        lambda b: f"class A {{ void h(int x) {{\n{b}\n}} }}\n", lambda e: f"List<List<A>> v = {e};"
    ),
    "c": curly_statements(lambda b: f"#define Z 1\nvoid h(int *x) {{\n{b}\n}}\n", lambda e: f"unsigned int v = {e};"),
    "cpp": curly_statements(
        lambda b: f"template <typename T> auto h(T&& x) -> int {{\n{b}\n}}\n", lambda e: f"const A<B<int>> v = {e};"
    ),
}
