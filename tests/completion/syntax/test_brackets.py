"""Scanning brackets, strings and comments."""

import pytest

from completion.syntax.brackets import Scan, scan


def characters(found):
    return "".join(bracket.character for bracket in found)


@pytest.mark.parametrize(
    ("language", "text", "opened", "unopened", "string"),
    [
        ("python", "foo(a, [b", "([", "", ""),
        ("python", "a) + b]", "", ")]", ""),
        ("python", "x = '(' # [", "", "", ""),
        ("python", 'x = """ ( \n " ', "", "", '"""'),
        ("python", "x = 'abc", "", "", "'"),
        ("python", "x = 'abc\ny = (", "(", "", ""),
        ("javascript", "`a ${b} (\n", "", "", "`"),
        ("javascript", "f(() => { // (\n", "({", "", ""),
        ("rust", "fn f<'a>(x: &'a str, c = '(')", "", "", ""),
        ("c", "/* ( */ f('\\'', \"\\\"(\"", "(", "", ""),
        ("go", "x := `(`\n", "", "", ""),
        ("", "it's (fine)", "", "", ""),
        ("html", "<p>it's (", "(", "", ""),
        ("html", '<a title="(', "", "", '"'),
        ("html", "<a title='(' href=\"b", "", "", '"'),
        ("html", '<a title="a\n(', "(", "", ""),
        ("css", "/* it's ( */ a { content: '", "{", "", "'"),
        ("lua", "f('(') -- it's (\ng(", "(", "", ""),
        ("sql", "SELECT '( \n", "", "", "'"),
        ("yaml", "a: it's\nb: [", "[", "", ""),
        ("haskell", "f x' = (", "(", "", ""),
        ("clojure", '(f "(" ; it\'s (\n', "(", "", ""),
        ("shellscript", "echo '(", "", "", "'"),
        ("shellscript", "if [ $# -lt 1 ]; then f ${#a} ${b#c} (", "(", "", ""),
        ("shellscript", "a ;# it's\n(# it's\n[", "([", "", ""),
        ("yaml", "a: b#( # [\n#[\n- {", "({", "", ""),
        ("dockerfile", "# it's\nRUN a ${b#c} (", "(", "", ""),
        ("makefile", "a:\n\tb $$# $${#c} (", "(", "", ""),
        ("perl", "$#{$a} # it's\n(", "(", "", ""),
        ("shellscript", "cat <<EOF\nit's (\nEOF\nf(", "(", "", ""),
        ("shellscript", "x=$((1 << n)); echo '", "", "", "'"),
        ("shellscript", 'x="$(echo "$x" | sed \'s/"//g\')"\nf(', "(", "", ""),
        ("shellscript", 'cd "$(dirname "$(readlink "$0")")" && f(', "(", "", ""),
        ("shellscript", 'echo "$(( $(date +%s) - start ))s" (', "(", "", ""),
        ("shellscript", 'echo "$(f "a', "", "", '"'),
        ("shellscript", "echo \"it's $(f", "", "", '"'),
        ("shellscript", "echo 'a'\\''b' \\\" '\\' $'it\\'s' (", "(", "", ""),
        ("ruby", "a = <<~TEXT\n  don't {\nTEXT\nf(", "(", "", ""),
        ("terraform", 'a = <<JSON\n{\n  "b": "', "{", "", ""),
        ("terraform", "// it's (\na = [", "[", "", ""),
        ("kotlin", 'f("""\n it\'s (\n""".trim()) {', "{", "", ""),
        ("scala", "f('a, '\"', '{ g(", "({(", "", ""),
        ("scala", 'f("it\'s", """a\n\'(""", b', "(", "", ""),
        ("csharp", 'f(@"C:\\" + @"\n(""it\'s""").g([', "([", "", ""),
        ("dart", "f('''\n it's (\n''') {", "{", "", ""),
        ("php", "#[A]\n# it's (\nf([", "([", "", ""),
        ("php", "<p>Today's (", "(", "", ""),
        ("vue", "<p>It's https://a.b/c (d)</p> {", "{", "", ""),
        ("svelte", "<h2>Today's items (all</h2>\n<p>:(</p>\n{f(", "{(", "", ""),
        ("typescriptreact", "<p>(it's)</p> {", "{", "", ""),
        ("scss", "a { b: url(https://c.d/e); // (\n", "{", "", ""),
        ("jsonc", '{ // it\'s [\n "a": "', "{", "", '"'),
        ("cmake", '# it\'s (\n#[[ (\n( ]]\nset(A "(" ${B}', "(", "", ""),
        ("lua", "--[[ it's (\n( ]] f(a[b[1]], [[ (\n ' ]], [=[ ]] ( ]=]", "(", "", ""),
        ("haskell", "f '(' = g '\"' (x' -- (\n {- ( -} [", "([", "", ""),
        ("julia", "A' * (B' #= ( =# [c", "([", "", ""),
        ("ocaml", "let f x' (y : 'a) = (* it's ( *) g '(' \"(\" (*) [", "[", "", ""),
        ("fsharp", "let f x' = (* it's ( *) g '(' // (\n  (*) [", "[", "", ""),
        ("elixir", '@doc """\nit\'s "a" (\n"""\nf(', "(", "", ""),
        ("sql", "a LIKE '(' ESCAPE '\\'; f(", "(", "", ""),
        ("sql", "a = 'it''s (' AND f(", "(", "", ""),
        ("toml", "a = 'C:\\'\nb = [", "[", "", ""),
        ("yaml", "a: (it's)\nb: 'c:\\' # (\nd: [", "[", "", ""),
        ("graphql", '"""\nIt\'s (\n"""\ntype A {', "{", "", ""),
        ("powershell", "<# it's (\n #> f 'C:\\' @\"\n it's (\n\"@ {", "{", "", ""),
        ("clojure", '(f \\( \\" [', "([", "", ""),
        ("go", "a(`C:\\`, b[", "([", "", ""),
        ("html", "<!-- :( --> (", "(", "", ""),
        ("latex", "% it's {\n50\\% {", "{", "", ""),
        ("erlang", "f($(, $\", $\\', \"a (\nb\", 'it (') % it's (\n -> {", "{", "", ""),
        ("nix", "# it's (\nf = a: foldl' b x'' ( /* ' ( */ [", "([", "", ""),
        ("nix", "a = ''\n  it's (\n  ''${b} ''\\n '''c''' [\n''; d = {", "{", "", ""),
        ("nix", "a = ''\n  echo '", "", "", "''"),
        ("perl", "f(\n\n=head1 NAME\n\nit's (\n\n=over\n\n=cut\n\n[", "([", "", ""),
        ("perl", "=method f\n\nit's (\n\n=cut\n\n{", "{", "", ""),
        ("perl", "$a =head1; f if $] < 5.020; {", "{", "", ""),
        ("r", "`[.it's` <- function(x) {\n  x$`(`", "{", "", ""),
    ],
)
def test_scan(language, text, opened, unopened, string):
    found = scan(text, language)
    assert characters(found.open) == opened
    assert characters(found.unopened) == unopened
    assert found.string == string


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("javascript", "s.replace(/[)\\]/]/g, '')"),
        ("javascript", "/\\)/g"),
        ("javascript", "const all = [\n  /foo[(]/,\n\t/it's/,\n/`/];"),
        ("typescript", "const f = (x) => /(/.test(x) || !/[{]/.test(x) && y?/(/:/[(]/"),
        ("typescriptreact", "switch (a) { case /'/.test(b): return /\"/.test(c) }"),
        ("ruby", "m = s.match(/\\((.*)/) if s =~ /(/ && t !~ /'/"),
        ("ruby", "a.split /'/; case b when /[(]/ then c { /(/ } end"),
        ("perl", "grep { /'/ } @a; $s =~ s/[(]//; $s =~ m/(/ && split qr/'/, $s"),
    ],
)
def test_a_regular_expression_has_no_brackets_and_quotes(language, text):
    assert scan(text, language) == Scan()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ruby", "A = %r{(?:\\w+|[*(]/#{b.map { |c| %w[(] }})\\s{2}'}.freeze"),
        ("ruby", "f %(You're my \\) [boy), body; g(%w<' (>, %i|[|, %q!'!)"),
        ("ruby", "a.putc(?\"); [?[, ?', ?\\(] if b.empty?(c) && d?('e')"),
        ("ruby", "f(a % [b], a %[b], a % (b), c ? [d] : (e))"),
        ("ruby", 'f("#{a ? "#{b}" : c})")'),
        ("perl", "my @a = (q{it's (}, qw(' \"), qr!^[(]'!i, qq[a {b} \"]); $a =~ m{[(]'} and $b =~ m|'(|;"),
        ("perl", "s/'/\"/g; $a =~ s!\\(!'!; tr/'/\"/; s{'}{\"}; y|(|[|; $s{a} / $q / $y / @m / %s{b}; $a->s('b')"),
        ("elixir", 'assert a =~ ~r/cannot fetch key \\"(/ and b == ~s("it\'s [") or c in ~w[\' (]a'),
        ("elixir", '@specials ~c|()<>@,;:\\\\"/[]?={}|'),
        ("elixir", "defp split(<<?], ?[, ?\\\", ?', a::binary>>) when b == ?( and valid?(c), do: d"),
        ("elixir", 'f("#{if a, do: "#{b}"})")'),
    ],
)
def test_a_literal_that_ends_on_its_line_has_no_brackets_and_quotes(language, text):
    assert scan(text, language) == Scan()


@pytest.mark.parametrize(
    ("language", "text", "opened", "string"),
    [
        ("ruby", "f(%w[a ", "([", ""),
        ("ruby", "f(%(it's", "((", "'"),
        ("ruby", "a %\n(b", "(", ""),
        ("perl", "f(q(a ", "((", ""),
        ("elixir", "f(~s(a ", "((", ""),
        ("elixir", 'f(~s"a(', "(", '"'),
    ],
)
def test_a_literal_without_an_end_is_code(language, text, opened, string):
    found = scan(text, language)
    assert (characters(found.open), found.string) == (opened, string)


@pytest.mark.parametrize(
    ("language", "text", "unopened"),
    [
        ("javascript", "(a / b) / c) / d", ")"),
        ("javascript", "x = a\n  / (b / c)", ""),
        ("javascript", " / f(a / 2))", ")"),
        ("javascript", "/n)", ")"),
        ("typescript", "a! / (b! / c)", ""),
        ("go", "a = b, /c) / d", ")"),
        ("ruby", "a / (b / c) + a/(b/c)", ""),
        ("typescriptreact", "<div>{a} / {b}</div><A\n  b={c}\n/>, (<br />)", ""),
        ("svelte", "<li>{#if a}b{/if}</li>", ""),
        ("javascript", "x = /a)\n/", ")"),
        ("javascript", f"x = /{'a' * 200})/", ")"),
    ],
)
def test_a_slash_that_begins_no_regular_expression_is_code(language, text, unopened):
    found = scan(text, language)
    assert (characters(found.open), characters(found.unopened), found.string) == ("", unopened, "")


@pytest.mark.parametrize(
    ("language", "before", "text", "unopened"),
    [
        ("shellscript", "if [[ $", "# -eq 0 ]]", "]]"),
        ("shellscript", "n=$((${", "#a[@]}))", "}))"),
        ("shellscript", "if [[ ", "# a ]]", ""),
        ("perl", "for (0 .. $", "#a)", ")"),
        ("php", "f(a) ", "# b)", ""),
        ("ruby", "if (a =~ ", "/b)/)", ")"),
        ("javascript", "if (a ", "/b) / c)", "))"),
        ("javascript", "  return ", "/b)/)", ")"),
    ],
)
def test_what_is_before_a_text_says_what_its_first_characters_are(language, before, text, unopened):
    found = scan(text, language, before=before)
    assert characters(found.unopened) == unopened
    assert found.unopened == scan(text, language, before=f"x = 1; {before}").unopened
    assert all(text[bracket.offset] == bracket.character for bracket in found.unopened)


def test_a_string_that_begins_before_the_text_ends_at_its_quote():
    found = scan("abc') + (", "python", "'")
    assert found.string_end == 4
    assert characters(found.open) == "("
