"""A valid text of each language that uses its harder parts."""

SAMPLES = {
    "python": """import os
@property
def f(a, *b, key=None, **rest) -> int:
    \"\"\"Doc\tstring ä.\"\"\"
    x = f"{a!r:>{key}} {{}}" + 'b' rb"c"
    if a:
        return [i for i in b if i]
    elif not (a and
              b):  # comment
        pass
    else:
        while True:
            break
    match a:
        case {"k": [1, *_]}:
            print(a)
    async def g(): await h()
    return lambda: x


class C(B, metaclass=M):
    y: int = 1
    def m(self): self.y += 1; return
""",
    "javascript": """import x, {y as z} from "m";
// comment
class A extends B { static #p = 1; get v() { return this.#p } async *g() { yield* h() } }
const f = async (a, {b = 2, ...c}) => { for await (const d of a) { d?.e ?? `t${d}u` } }
let s = a / b, r = /re[/]x/gi
if (s) s++
else { do { r-- } while (r) }
label: for (;;) { continue label }
const el = <div a="b" {...p}>text {x} <B/></div>
""",
    "typescript": """import type { T } from "./t";
export abstract class A<T extends object = {}> implements I { constructor(private readonly x?: number) { super() } }
type M<K> = { readonly [P in keyof K]?: K[P] } & Array<Map<string, number>>;
function isA(x: unknown): x is A { return (x as any)! instanceof A }
enum E { A = 1 << 2, B }
declare module "m" { export const q: typeof import("z") }
const g = <T,>(a: T): T => a;
let z = a < b && c > (d)
""",
    "typescriptreact": "const A = <T,>(p: P<T>) => <div key={p.k as string}>{p.xs.map((x) => <B {...x} />)}</div>;\n",
    "go": """package main

import ("fmt"; m "math")

type S[T any] struct { a, b int `tag`; *T }

func (s *S[T]) F(x ...int) (r int, err error) {
\tfor i := range x { if i > 1 { r++ } else if v, ok := m[i]; ok { goto end } }
\tselect { case c <- 1: default: }
\tdefer func() { recover() }()
end:
\treturn r, fmt.Errorf("%d\\n", 'x')
}
""",
    "rust": """//! Doc
use std::{fmt, io::*};
#[derive(Debug)]
pub(crate) struct S<'a, T: Clone + 'a>(&'a mut T) where T: Sized;
impl<'a> S<'a> { fn f(&mut self, x: *const u8) -> Option<Vec<Vec<u8>>> { let y = r#"raw "s""#; /* a /* b */ c */
    match x { Some(ref z @ 1..=9) if z > 0 => loop { break 'l' }, _ => { println!("{}", y); None } } } }
macro_rules! m { ($($x:expr),*) => { $( $x; )* } }
async fn g() { let c = |a| a.await?; unsafe { *p = b'x' as u8 } }
""",
    "java": """package a.b;
import java.util.*;
@Anno(x = 1) public final class A<T extends B & C> extends D implements E {
  private static final int[] X = {1, 2}; enum K { P, Q { void f() {} } }
  <U> List<Map<String, U>> m(final int... a) throws IOException {
    for (var b : a) {
    switch (b) { case 1 -> f(); default -> { } } }
    try (R r = new R()) { return x instanceof String s ? (a) -> a : A::new; }
    catch (E1 | E2 e) { } finally { synchronized (this) { } }
    String t = \"\"\"
      text \"\"\"; }
  record P(int x) { }
}
""",
    "c": """#include <stdio.h>
#define M(a, b) \\
    ((a) + (b))
#if defined(X) && X > 1
typedef struct s { int a : 3; union { char *p; }; } s_t;
#else
enum e { A = 'x', B };
#endif
static inline const char *f(int (*g)(void), ...) {
  for (int i = 0; i < 3; i++) { s_t v = { .a = 1 }; (void)v; }
  goto l; l: return "a" "b\\n"; }
unsigned long x = (unsigned long)sizeof(int) * 2;
""",
    "cpp": """#include <vector>
namespace a::b { template <typename T, int N = 3> class C final : public D<T> {
  public: explicit C(T&& t) noexcept : t_(std::move(t)) {}
  ~C() = default;
  auto operator<=>(const C&) const = default; std::vector<std::vector<int>> v; private: T t_; }; }
auto f = [&, x = 1](auto&&... a) mutable -> int { if constexpr (sizeof...(a) > 1) return (a + ...);
  for (auto& [k, w] : m) { co_await k; } throw; };
const char* r = R"x(raw ")" )x"; int y = a < b ? c > d : e<f>(g);
template <> struct S<int> { static_assert(true); using U = int; };
""",
    "json": '{"a": [1, -2.5e3, true, null], "b": {"c": "d\\n\\u00e9 é"}}\n',
}
