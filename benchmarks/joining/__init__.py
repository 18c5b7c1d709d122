"""Shortest insertion, compared with the texts of `completion.closing`, which it shall replace. Nothing here suggests.

What the tests leave out, because the search does not find it or because it keeps too much:

- Python, an unfinished delimiter of a docstring: no insertion. Only whole ends of strings are tried.
- Python and JavaScript, a keyword where a name must stand (`import as` of `import asyncio`, `const do`): no insertion.
  An insertion lengthens a word only to a keyword.
- C++, an unfinished `#define` inside `#ifdef`: no insertion. Why is not known.
- Java and Rust, a head whose body stands below the cursor without its opener: no insertion. What an insertion begins
  has to end in it, so it cannot be the `{` of a `}` below.
- Manual texts that say the next line again, or have a bracket too many: some are kept that the product cuts. Why is
  not known.
"""
