"""Shortest insertion, compared with the texts of `completion.closing`, which it shall replace. Nothing here suggests.

What the tests leave out, because the search does not find it:

- Python, a text that ends with the line break after a head: no insertion. All ways to a stack that are followed are
  statements on the head's line, none is a block.
- Python and JavaScript, a keyword where a name must stand (`import as` of `import asyncio`, `const do`): no insertion.
  An insertion lengthens a word only to a keyword.
- C++, an unfinished `#define` inside `#ifdef`: no insertion. Why is not known.
- Java and Rust, starts of a head whose body stands below the cursor: the document lacks the head's name as well, and
  what joins the longer start costs more than what joined it before.
- A manual text that keeps a closer too many, before the same closer: kept. An insertion that costs as much as what the
  line lacked before (a semicolon) may be the opener of that closer.
"""
