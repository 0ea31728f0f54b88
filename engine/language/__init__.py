"""Expressions as a debugger reads them: `node->next[2].name`, `*argv@argc`, `(char)$rdi`.

- `tokens`: words of an expression; `syntax`: what they say, as a tree.
- `value_types`: types that an expression makes (pointers, arrays, numbers) beside those of the
  program's debug information.
- `values`: values with their types and, where they have one, their places.
- `surroundings`: what names mean at a place: registers, variables, memory; `reach`: members,
  elements and targets there; `operators`: C's operators and casts; `evaluation`: a tree's value.
- `printing`: values as gdb prints them, with its format letters, as far as `print_options` say,
  `real_texts`: numbers with a point, `enumerators`: those of enumerations; `typetexts`: types
  likewise, `user_types` with the names that their users write.
- `held`: the things in a container; `containers`: what those of libstdc++ hold,
  `rust_containers`: those of Rust; `container_methods`: their operators and methods.
- `rust_syntax`, `rust_evaluation`, `rust_printing` and `rust_types`: the same for Rust, which
  stands where the code that is looked at is Rust's.
- `convenience_functions`: `$_strlen` and the others that need nothing but values.

Nothing here knows of guests, frames or processes.
"""
