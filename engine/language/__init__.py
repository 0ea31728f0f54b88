"""Expressions as a debugger reads them: `node->next[2].name`, `*argv@argc`, `(char)$rdi`.

- `tokens`: words of an expression; `syntax`: what they say, as a tree; `token_reader`: what
  the parsers of all languages stand on.
- `value_types`: types that an expression makes (pointers, arrays, numbers) beside those of the
  program's debug information; `register_types`: those of registers, `made_records`: structures
  that no debug information describes.
- `values`: values with their types and, where they have one, their places.
- `surroundings`: what names mean at a place: registers, variables, memory; `reach`: members,
  elements and targets there; `operators`: C's operators and casts; `evaluation`: a tree's value.
- `printing`: values as gdb prints them, as far as `print_options` say; `format_letters`: by the
  letters behind a slash and by printf's; `memory_texts`: texts that pointers lead to;
  `real_texts`: numbers with a point, `enumerators`: those of enumerations; `quoting`: characters
  and texts in quotes; `typetexts`: types likewise, as `type_flags` say, `layouttexts` with offsets
  and sizes, `user_types` with the names that their users write.
- `held`: the things in a container; `containers`: what those of libstdc++ hold,
  `further_containers`: its variants, paths, iterators and others of one thing, `llvm_containers`:
  those of libc++, `library_values`: times, error codes and functions of both, `rust_containers`:
  those of Rust; `parts`: how their parts are found;
  `container_methods`: their operators and methods; `user_printers`: what the user's say.
- `languages`: the languages that there are, each with the modules that write it.
- `class_members`: members of classes of C++, `conversions`: how arguments fit parameters,
  `cpp_calls`: which function is called, `aggregates`: objects made from their parts,
  `type_identities`: what `typeid` gives, `cpp_evaluation`: values of trees of C++.
- `rust_syntax`, `rust_evaluation`, `rust_printing` and `rust_types`: the same for Rust, which
  stands where the code that is looked at is Rust's; `rust_names`: what its paths mean,
  `rust_makers`: values that an expression makes, `rust_pointers`: what its owners lead to,
  `rust_methods`: which function a method, a trait's too, is.
- `go_syntax`, `go_evaluation`, `go_printing` and `go_types`: the same for Go; `go_parts`: what its
  values are made of, `go_values`: how much of them is read, `go_numbers`: arithmetic,
  `go_program`: what a program tells of its types, `go_names`: what its names mean.
- `prototypes`: functions that a header of C declares; `libc.h` has those of the C library.
- `library_functions`: those of C++'s library that the layout of their argument answers.
- `macros`: those of the preprocessor, and the expansion of a text.
- `convenience_functions`: `$_strlen` and the others that need nothing but values.

Nothing here knows of guests, frames or processes.
"""
