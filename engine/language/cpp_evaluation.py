"""The value of an expression of C++ in its surroundings (gdb/valops.c, gdb/valarith.c)."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import cached_property
from typing import Final

from engine.errors import CommandError
from engine.image.datatypes import TypeKind
from engine.image.methods import ClassMethod
from engine.language import value_types as ct
from engine.language.aggregates import aggregate, is_constructed
from engine.language.class_members import ClassMembers, has_methods
from engine.language.conversions import same_type
from engine.language.cpp_calls import Candidate, CppCalls
from engine.language.evaluation import Evaluator
from engine.language.library_functions import library_function
from engine.language.syntax import Expression
from engine.language.type_identities import TypeIdentities
from engine.language.user_types import bare_type
from engine.language.value_types import CType, is_reference
from engine.language.values import MemoryPlace, TypedValue

_TRUTHS: Final = frozenset(("==", "!=", "<", ">", "<=", ">="))


class CppEvaluator(Evaluator):
    """Finds values of C++'s trees in one place."""

    @cached_property
    def members(self) -> ClassMembers:
        """Members of classes."""
        return ClassMembers(self._around, self.reach)

    @cached_property
    def calls(self) -> CppCalls:
        """Calls of the program's functions."""
        return CppCalls(self._around, self.reach, self.operators, self.members)

    @cached_property
    def identities(self) -> TypeIdentities:
        """Type information of types and objects, for `typeid`."""
        return TypeIdentities(self._around, self.reach, self.members)

    def value(self, node: Expression) -> TypedValue:
        """The value of a tree.

        Raises:
            CommandError: it has none.
            GuestFaultError: memory cannot be read.
        """
        match node.kind:
            case "name" if node.text in ("true", "false"):
                return self._truth(holds=node.text == "true")
            case "name" if node.text == "nullptr":
                return self.reach.made(ct.pointer_to(ct.VOID, self.reach.pointer), 0)
            case "name":
                return self._named(node.text)
            case "member" | "arrow":
                return self._member(node)
            case "static_cast" | "reinterpret_cast" | "const_cast" | "dynamic_cast":
                return self._cast_by_name(node)
            case "cast" if node.type is not None:
                unknown = self.unknown_call(node.parts[0], self.type(node.type))
                if unknown is not None:
                    return unknown
                return self._cast(self.value(node.parts[0]), self.type(node.type))
            case "choice":
                condition, yes, no = node.parts
                return self.value(yes if self._condition(condition) else no)
            case "alignof":
                kind = self._type_asked(node)
                return self.reach.made(ct.UNSIGNED_LONG, self._alignment(kind))
            case "typeid" if node.type is not None:
                return self.identities.of_type(self.type(node.type))
            case "typeid":
                return self.identities.of_value(self.operand(node.parts[0]))
            case "made" if node.type is not None:
                return self._made_of(self.type(node.type), node.parts)
            case "index":
                return self._element(node)
            case "call" if node.parts[0].kind == "type":
                return self._made_from(node)
        return super().value(node)

    def type_of_value(self, node: Expression, word: str) -> CType:
        """The type of `decltype(EXPR)`: a name's own, of another place a reference to it."""
        found = super().type_of_value(node, word)
        if not word.endswith("decltype"):
            return found.resolved.target if is_reference(found) else found
        places = ("index", "choice", "assign")
        is_place = node.kind in places or (node.kind == "unary" and node.text == "*")
        if is_place and not is_reference(found) and self.value(node).address is not None:
            return ct.reference_to(found, self.reach.pointer)
        return found

    def _type_asked(self, node: Expression) -> CType:
        """The type that is named, or that of a value."""
        return self.operand(node.parts[0]).type if node.type is None else self.type(node.type)

    def _truth(self, *, holds: bool) -> TypedValue:
        return self.reach.made(ct.BOOL, int(holds))

    # -- names ------------------------------------------------------------------------------

    def _named(self, name: str) -> TypedValue:
        """A variable, a member of the object whose method runs, or a class's own thing."""
        found = self._around.local(name)
        if found is None and name != "this":
            this = self._around.local("this")
            if this is not None and this.type.resolved.kind is TypeKind.POINTER:
                # A path of something else is none of a base class.
                with suppress(CommandError) if "::" in name else nullcontext():
                    found = self._member_of(self.reach.pointed(this), name)
        found = found or self._around.variable(name)
        if found is None and "::" in name:
            found = self._of_class(name) or self._in_function(name)
        if found is None:
            raise CommandError(self._missing(name))
        return found

    def _in_function(self, name: str) -> TypedValue | None:
        """A variable of a function by its path: `main::counter`."""
        scope, _, last = name.rpartition("::")
        if self._around.type((scope,)) is not None or not self._around.functions(scope):
            return None
        found = self._around.variable(last, scope)
        if found is None:
            raise CommandError(f'No symbol "{last}" in specified context.')
        return found

    def _missing(self, name: str) -> str:
        """The complaint about a name that means nothing."""
        scope, _, last = name.rpartition("::")
        kind = self._around.type((scope,)) if scope else None
        if kind is not None and kind.resolved.kind is TypeKind.RECORD:
            return f"There is no field named {last}"
        if scope and kind is None:
            if self._around.is_namespace(scope):
                return f'No symbol "{last}" in namespace "{scope}".'
            name = name.partition("::")[0]
        return f'No symbol "{name}" in current context.'

    def _member_of(self, whole: TypedValue, name: str) -> TypedValue | None:
        """A member of an object by its name alone; a function as a value."""
        found = self.members.data(whole, name)
        if found is not None:
            return found
        candidates = self.calls.of_methods(self.members.methods(whole, name), ())
        if len(candidates) > 1:
            raise CommandError(f"cannot resolve overloaded method `{name}': no arguments supplied")
        return candidates[0].function if candidates else None

    def _of_class(self, name: str) -> TypedValue | None:
        """Static data, a function or an enumerator by its path."""
        scope, _, last = name.rpartition("::")
        kind = self._around.type((scope,))
        if kind is None:
            return None
        if kind.kind is TypeKind.ENUM:
            value = dict(kind.resolved.enumerators).get(last)
            return None if value is None else self.reach.made(kind, value)
        found = self.members.static(kind, last)
        if found is not None:
            return found
        whole = bare_type(kind.resolved.text)
        if whole != scope:
            found = self._around.variable(f"{whole}::{last}")
        if found is None:
            nowhere = TypedValue(kind, lambda: b"", MemoryPlace(0), order=self._order)
            candidates = self.calls.of_methods(self.members.methods(nowhere, last), ())
            found = candidates[0].function if candidates else None
        return found

    # -- members ----------------------------------------------------------------------------

    def _member(self, node: Expression) -> TypedValue:
        base = self._used_object(node)
        if base.type.resolved.kind is not TypeKind.RECORD:
            return self.reach.member(base, node.text, arrow=node.kind == "arrow")
        found = self._member_of(base, node.text)
        if found is None and self.members.methods(base, node.text):
            raise CommandError(f"Cannot take address of method {node.text}.")
        if found is None:
            what = "member or method" if has_methods(base.type) else "member"
            raise CommandError(f"There is no {what} named {node.text}.")
        return found

    def _used_object(self, node: Expression) -> TypedValue:
        """The object whose member is asked for; pointers of all kinds before `->` are followed."""
        base = self.operand(node.parts[0])
        for _ in range(8):
            kind = base.type.resolved.kind
            if kind is TypeKind.POINTER:
                target = base.type.resolved.target.resolved
                if target.kind is not TypeKind.RECORD:
                    return base
                return self.reach.pointed(base)
            if node.kind != "arrow" or kind is not TypeKind.RECORD:
                return base
            inner = self.methods.pointed(base)
            if inner is None:
                inner = self.calls.operator("->", [base])
            if inner is None:
                return base
            base = self.reach.used(inner)
            if base.type.resolved.kind is TypeKind.RECORD:
                return base
        return base

    def _no_operator(self, value: TypedValue, word: str) -> str:
        """Why there is none: a class declares what no code is of, or nobody has any such."""
        if any(True for _ in self.members.methods(value, f"operator{word}")):
            return f"Could not find operator{word}."
        return f'No symbol "operator{word}" in current context.'

    def _element(self, node: Expression) -> TypedValue:
        base, index = (self.operand(part) for part in node.parts)
        if base.type.resolved.kind is not TypeKind.RECORD:
            self._check_target(base)
            return self._subscripted(base, index)
        found = self.methods.element(base, index)
        if found is None:
            found = self.calls.operator("[]", [base, index])
        if found is None:
            raise CommandError(self._no_operator(base, "[]"))
        return found

    # -- calls ------------------------------------------------------------------------------

    def _called(self, node: Expression) -> TypedValue:
        called = node.parts[0]
        if called.kind == "dollar" and self._around.function(called.text[1:]) is not None:
            return super()._called(node)
        given = [self.operand(part) for part in node.parts[1:]]
        if called.kind in ("member", "arrow"):
            return self._method_called(called, given)
        if called.kind == "binary" and called.text in (".*", "->*"):
            return self._through_pointer(called, given)
        if called.kind == "name":
            found = library_function(self.methods, self.reach, called.text, given)
            if found is not None:
                return found
            found = self._function_called(called.text, given)
            if found is not None:
                return found
        return self._value_called(self.operand(called), given)

    def _method_called(self, called: Expression, given: list[TypedValue]) -> TypedValue:
        base = self._used_object(called)
        name = called.text
        if base.type.resolved.kind is not TypeKind.RECORD:
            if base.address is None and base.type.resolved.kind is not TypeKind.POINTER:
                raise CommandError("Attempt to take address of value not located in memory.")
            raise CommandError(
                "Attempt to extract a component of a value that is not a struct or union"
            )
        known = self.methods.method(base, name)
        if known is not None:
            return known(given)
        told = self.identities.method(base, name)
        if told is not None and not given:
            return told
        methods = self.members.methods(base, name)
        if methods:
            candidates = self.calls.of_methods(methods, given, base)
            if not candidates:
                raise CommandError("Cannot evaluate function -- may be inlined")
            return self.calls.called(self._chosen(candidates, base, name))
        member = self.members.data(base, name)
        if member is None:
            raise CommandError(
                f"Couldn't find method {bare_type(base.type.text.removeprefix('const '))}::{name}"
            )
        return self._value_called(self.reach.used(member), given)

    def _chosen(self, candidates: list[Candidate], base: TypedValue, name: str) -> Candidate:
        return self.calls.best(candidates, f"{bare_type(base.type.resolved.text)}::{name}")

    def _function_called(self, name: str, given: list[TypedValue]) -> TypedValue | None:
        """The result of a function by its name; None where it is a variable's."""
        if self._around.local(name) is not None:
            return None
        this = self._around.local("this")
        if this is not None and this.type.resolved.kind is TypeKind.POINTER:
            whole = self.reach.pointed(this)
            methods = self.members.methods(whole, name) if "::" not in name else []
            if methods:
                candidates = self.calls.of_methods(methods, given)
                return self.calls.called(self.calls.best(candidates, name))
        candidates = self.calls.of_functions(self._around.functions(name), given)
        if not candidates and "::" in name:
            scope, _, last = name.rpartition("::")
            kind = self._around.type((scope,))
            if kind is not None and kind.resolved.kind is TypeKind.RECORD:
                nowhere = TypedValue(kind, lambda: b"", order=self._order)
                methods = [
                    one for one in self.members.methods(nowhere, last) if one.method.is_static
                ]
                candidates = self.calls.of_methods(methods, given)
        if not candidates:
            return None
        return self.calls.called(self.calls.best(candidates, name))

    def _value_called(self, function: TypedValue, given: list[TypedValue]) -> TypedValue:
        """The result of calling a value: a function, a pointer to one or an object like one."""
        kind = function.type.resolved
        if kind.kind is TypeKind.RECORD:
            found = self.calls.operator("()", [function, *given])
            if found is None:
                raise CommandError("Invalid data type for function to be called.")
            return found
        return self.calls.called(Candidate(self.callable_of(function), given))

    def _through_pointer(self, node: Expression, given: list[TypedValue]) -> TypedValue:
        """The result of `(object.*pointer)(...)` (Itanium C++ ABI, 2.3)."""
        whole, pointer = self._with_pointer(node)
        owner = pointer.type.resolved.owner
        size = self.reach.pointer
        if owner is None or len(pointer.raw) <= size or whole.address is None:
            raise CommandError("Invalid data type for function to be called.")
        part = self.calls.as_class(whole, owner)
        raw, order = pointer.raw, self._order
        code, adjusted = (int.from_bytes(raw[at : at + size], order) for at in (0, size))
        virtual = bool(code & 1)
        if virtual:
            code -= 1
        this = (part.address or 0) + adjusted
        if virtual:
            table = int.from_bytes(self._around.read(this, size), order)
            code = int.from_bytes(self._around.read(table + code, size), order)
        kind = pointer.type.resolved.target
        function = TypedValue(kind, lambda: b"", MemoryPlace(code), order=order)
        first = self.reach.made(ct.pointer_to(part.type, size), this)
        return self.calls.called(Candidate(function, [first, *given]))

    def _with_pointer(self, node: Expression) -> tuple[TypedValue, TypedValue]:
        """The object and the pointer to a member on the sides of `.*` and `->*`."""
        left, pointer = (self.operand(part) for part in node.parts)
        if node.text == "->*":
            left = self.reach.pointed(left)
        return left, pointer

    def _made_from(self, node: Expression) -> TypedValue:
        """`int(2.5)` and `Vec(1, 2)`."""
        name = node.parts[0].type
        assert name is not None, "the parser has read it"
        return self._made_of(self.type(name), node.parts[1:])

    def _made_of(self, kind: CType, parts: Sequence[Expression]) -> TypedValue:
        """A value of a type from one value, or of a class from those of its parts."""
        given = [self.value(part) for part in parts]
        whole = kind.resolved
        if whole.kind is not TypeKind.RECORD:
            if len(given) > 1:
                raise CommandError("Only one value is converted to a type.")
            return self._cast(given[0], kind) if given else self.reach.made(kind, 0)
        if len(given) == 1:
            one = self.reach.used(given[0])
            if one.type.resolved.kind is TypeKind.RECORD and self.calls.is_of(one, whole):
                return self._cast(one, kind)
        if is_constructed(whole):
            return self.calls.made(kind, [self.reach.used(one) for one in given])
        template = self.reach.made(ct.INT, 0)
        return aggregate(kind, given, self._cast, template)

    # -- operators --------------------------------------------------------------------------

    def _unary(self, node: Expression) -> TypedValue:
        word, part = node.text, node.parts[0]
        if word == "&":
            return self._address_of(part)
        if word in ("++", "--"):
            return super()._unary(node)
        whole = self.value(part)
        value = self.reach.used(whole)
        if word == "*" and value is not whole and value.type.kind in ct.INTEGERS:
            raise CommandError("Attempt to take contents of a non-pointer value.")
        if word == "*":
            self._check_target(value)
        if value.type.resolved.kind is TypeKind.RECORD:
            inner = self.methods.pointed(value) if word == "*" else None
            found = inner or self.calls.operator(word, [value])
            if found is None and word == "!":
                made = self._as_scalar(value, ct.BOOL)
                found = self._truth(holds=not made.truth) if made is not value else None
            if found is None:
                raise CommandError(self._no_operator(value, word))
            return found
        if word == "!":
            return self._truth(holds=not value.truth)
        return self._of_sign(word, value)

    @staticmethod
    def _check_target(value: TypedValue) -> None:
        kind = value.type.resolved
        if kind.kind is TypeKind.POINTER and kind.target.resolved.kind is TypeKind.VOID:
            raise CommandError("Attempt to dereference a generic pointer.")

    def _address_of(self, part: Expression) -> TypedValue:
        """The address of a value, or a pointer to a member of a class."""
        if part.kind == "name" and "::" in part.text:
            scope, _, last = part.text.rpartition("::")
            kind = self._around.type((scope,))
            if kind is not None and kind.resolved.kind is TypeKind.RECORD:
                member = kind.resolved.member(last)
                if member is not None:
                    return self._member_pointer(kind, member.type, member.offset)
                found = self._method_pointer(kind, last)
                if found is not None:
                    return found
        if part.kind == "type":
            raise CommandError("Attempt to take address of value not located in memory.")
        value = self.value(part)
        if is_reference(value.type):
            pointer = ct.pointer_to(value.type.resolved.target, self.reach.pointer)
            found = self.reach.made(pointer, value.number)
            found.pages = value.pages
            return found
        return self.reach.address_of(value)

    def _member_pointer(self, owner: CType, kind: CType, offset: int) -> TypedValue:
        size = self.reach.pointer
        return self.reach.made(ct.member_pointer_to(kind, owner, size), offset)

    def _method_pointer(self, kind: CType, name: str) -> TypedValue | None:
        """A pointer to a function of a class (Itanium C++ ABI, 2.3); None for none such."""
        nowhere = TypedValue(kind, lambda: b"", MemoryPlace(0), order=self._order)
        found = self.members.methods(nowhere, name)
        methods = [one.method for one in found if not one.method.is_static]
        if not methods:
            return None
        method = methods[0]
        code = self._code_of(method)
        if code is None:
            return None
        size, order = self.reach.pointer, self._order
        raw = code.to_bytes(size, order) + bytes(size)
        pointer = ct.member_pointer_to(method.type, kind.resolved, 2 * size)
        return TypedValue(pointer, lambda: raw, order=order)

    def _code_of(self, method: ClassMethod) -> int | None:
        """The first word of a pointer to a function of a class: its code or its place."""
        if method.slot is not None:
            return method.slot * self.reach.pointer | 1
        return self._around.linked(method.linkage) if method.linkage else None

    def _step(self, part: Expression, by: int, *, before: bool) -> TypedValue:
        old = self.operand(part)
        if old.type.resolved.kind is TypeKind.RECORD:
            given = [old, self.reach.made(ct.INT, 0)] if before else [old]
            found = self.calls.operator("++" if by > 0 else "--", given)
            if found is None:
                raise CommandError("Argument to arithmetic operation not a number or boolean.")
            return found
        return super()._step(part, by, before=before)

    def _binary(self, node: Expression) -> TypedValue:
        word = node.text
        if word in (".*", "->*"):
            return self._pointed_member(node)
        if word in ("&&", "||"):
            first = self._condition(node.parts[0])
            if first == (word == "||"):
                return self._truth(holds=first)
            return self._truth(holds=self._condition(node.parts[1]))
        left, right = self.operand(node.parts[0]), self.operand(node.parts[1])
        if word == "@":
            return self.reach.repeated(left, right.number)
        return self._combined(word, left, right)

    def _condition(self, part: Expression) -> bool:
        return self._as_scalar(self.operand(part), ct.BOOL).truth

    def _as_scalar(self, value: TypedValue, kind: CType) -> TypedValue:
        """A value; of an object what its class's own conversion makes of it, if it has one."""
        if kind.resolved.kind is TypeKind.BOOL and value.type.resolved.kind is TypeKind.RECORD:
            known = self.methods.truth(value)
            if known is not None:
                return self._truth(holds=known)
        made = self.calls.converted_by_user(value, kind, explicit=True)
        return value if made is None else made

    def _pointed_member(self, node: Expression) -> TypedValue:
        whole, pointer = self._with_pointer(node)
        kind = pointer.type.resolved
        if kind.owner is None:
            raise CommandError("The right operand is no pointer to a member.")
        if len(pointer.raw) > self.reach.pointer:
            raise CommandError(
                "A function of a class is not a value; call it: (OBJECT.*POINTER)()."
            )
        part = self.calls.as_class(whole, kind.owner)
        offset = int.from_bytes(pointer.raw, self._order, signed=True)
        if offset < 0 or part.address is None:
            raise CommandError("The pointer to a member is null.")
        return self.reach.at(kind.target, part.address + offset)

    def _combined(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        records = TypeKind.RECORD in (left.type.resolved.kind, right.type.resolved.kind)
        if records:
            return self._of_objects(word, left, right)
        if word in _TRUTHS:
            left, right = self._alike(left, right)
            return self._truth(holds=super()._combined(word, left, right).truth)
        return super()._combined(word, left, right)

    def _alike(self, left: TypedValue, right: TypedValue) -> tuple[TypedValue, TypedValue]:
        """Pointers to parts of one object as pointers to the same part."""
        moved = self.calls.moved(left, right.type)
        return (left if moved is None else moved), right

    def _of_objects(self, word: str, left: TypedValue, right: TypedValue) -> TypedValue:
        known = self.methods.compared(word, left, right)
        if known is not None:
            return known
        same = self.identities.compared(word, left, right)
        if same is not None:
            return self._truth(holds=same)
        found = self.calls.operator(word, [left, right])
        if found is None:
            raise CommandError(f'No symbol "operator{word}" in current context.')
        return found

    def _assign(self, node: Expression) -> TypedValue:
        target, source = node.parts
        if node.text and target.kind != "dollar":
            old = self.operand(target)
            if old.type.resolved.kind is TypeKind.RECORD:
                found = self.calls.operator(f"{node.text}=", [old, self.operand(source)])
                if found is not None:
                    return found
        return super()._assign(node)

    # -- casts ------------------------------------------------------------------------------

    def _cast(self, value: TypedValue, kind: CType) -> TypedValue:
        """A value in another type, as C's casts give it in C++."""
        if is_reference(kind):
            return self._as_reference(self.reach.used(value), kind)
        value = self.reach.used(value)
        to = kind.resolved
        if to.kind is not TypeKind.RECORD:
            value = self._as_scalar(value, kind)
        both = to.kind is TypeKind.RECORD and value.type.resolved.kind is TypeKind.RECORD
        if both and not same_type(value.type, to):
            return self.calls.as_class(value, kind)
        return self.calls.converted(value, kind)

    def _as_reference(self, value: TypedValue, kind: CType) -> TypedValue:
        target = kind.resolved.target
        if value.address is None:
            raise CommandError("Attempt to take address of value not located in memory.")
        address = value.address
        if target.resolved.kind is TypeKind.RECORD is value.type.resolved.kind:
            size = self.reach.pointer
            whole = self.reach.made(ct.pointer_to(value.type, size), address)
            moved = self.calls.moved(whole, ct.pointer_to(target, size))
            address = address if moved is None else moved.number
        return self.reach.made(kind, address)

    def _cast_by_name(self, node: Expression) -> TypedValue:
        assert node.type is not None, "the parser has read it"
        kind, value = self.type(node.type), self.value(node.parts[0])
        if node.kind == "dynamic_cast":
            return self._dynamic(value, kind)
        if node.kind == "static_cast":
            return self._cast(value, kind)
        value = self.reach.used(value)
        if is_reference(kind):
            if value.address is None:
                raise CommandError("Attempt to take address of value not located in memory.")
            return self.reach.made(kind, value.address)
        return self.operators.cast(value, kind)

    def _dynamic(self, value: TypedValue, kind: CType) -> TypedValue:
        """A pointer or reference to the part that is asked for of the object as it is."""
        to, refers = kind.resolved, is_reference(kind)
        if to.kind is not TypeKind.POINTER or to.owner is not None:
            raise CommandError("Argument to dynamic_cast must be a pointer or reference type")
        target = to.target.resolved
        source = self.reach.used(value)
        if not refers:
            if source.type.resolved.kind is not TypeKind.POINTER:
                raise CommandError("Argument to dynamic_cast does not have pointer type")
            if not source.number:
                return self.reach.made(kind, 0)
            source = self.reach.pointed(source)
        if source.type.resolved.kind is not TypeKind.RECORD:
            raise CommandError("Argument to dynamic_cast does not have class type")
        up = [part for part in self.members.parts(source) if same_type(part.type, target)]
        whole = self.members.whole(source)
        if whole is None and not up:
            raise CommandError("Argument to dynamic_cast does not have a virtual function table")
        if target.kind is TypeKind.VOID and whole is not None:
            return self.reach.made(kind, whole.address or 0)
        parts = up or [
            part
            for part in (self.members.parts(whole) if whole is not None else ())
            if same_type(part.type, target)
        ]
        if len({part.address for part in parts}) == 1:
            return self.reach.made(kind, parts[0].address or 0)
        if refers:
            raise CommandError("dynamic_cast failed")
        return self.reach.made(kind, 0)

    def _alignment(self, kind: CType) -> int:
        kind = kind.resolved
        if kind.kind is TypeKind.ARRAY:
            return self._alignment(kind.element)
        if kind.kind is TypeKind.RECORD:
            return max((self._alignment(member.type) for member in kind.members), default=1)
        return kind.size or 1
