"""Trees of scripts as one line of text: `(+ 1 (* 2 $x))`."""

from engine.trace.bpftrace import tree as t
from engine.trace.bpftrace.parser import parse
from engine.trace.bpftrace.text import ScriptText, WrongScriptError


def read(text: str, *parameters: str, program: str = "") -> t.Script:
    return parse(ScriptText("stdin", text), parameters, program=program)


def body(text: str) -> str:
    """The shape of the statements of one probe with these statements."""
    return shape(read(f"begin {{ {text} }}").probes[0].body)


def value(text: str) -> str:
    """The shape of an expression."""
    statement = read(f"begin {{ $r = {text}; }}").probes[0].body.statements[0]
    assert isinstance(statement, t.Assignment)
    return shape(statement.value)


def refusal(text: str, *parameters: str, program: str = "") -> str:
    """The first line of what is said about a wrong script, without "stdin:"; "" if it is right."""
    try:
        read(text, *parameters, program=program)
    except WrongScriptError as error:
        return str(error).split("\n", 1)[0].removeprefix("stdin:")
    return ""


def shape(node: object) -> str:
    """A node and all below it."""
    match node:
        case None:
            return "-"
        case t.IntegerLiteral() | t.BooleanLiteral():
            return str(node.value)
        case t.StringLiteral():
            return repr(node.value)[1:]
        case t.PositionalParameter():
            return f"${node.number or '#'}"
        case t.Name():
            return node.name
        case t.ScratchName():
            return f"${node.name}"
        case t.MapName():
            return f"@{node.name}"
        case t.WrittenType():
            suffixes = (
                one if one == "*" else f"[{'' if one is None else one}]" for one in node.suffixes
            )
            return f"<{node.name}{''.join(suffixes)}>"
        case t.TypeOf():
            return _list("typeof", node.of)
        case t.SizeOf():
            return _list("sizeof", node.of)
        case t.TypeInfoOf():
            return _list("typeinfo", node.of)
        case t.OffsetOf():
            return _list("offsetof", node.of, *(t.Name(node.span, one) for one in node.path))
        case t.MapAccess():
            return f"{shape(node.map)}[{shape(node.key)}]"
        case t.AddressOf():
            return f"&{shape(node.of)}"
        case t.Unary():
            return _list(node.operator, node.operand)
        case t.Increment():
            target = shape(node.target)
            return f"({node.operator}{target})" if node.before else f"({target}{node.operator})"
        case t.Binary():
            return _list(node.operator, node.left, node.right)
        case t.Conditional():
            word = "if" if node.is_statement else "?"
            word += " comptime" if node.comptime else ""
            return _list(word, node.condition, node.then, node.otherwise)
        case t.FieldAccess():
            return f"{shape(node.of)}.{node.name}"
        case t.Index():
            return f"{shape(node.of)}[{shape(node.index)}]"
        case t.Cast():
            return _list("cast", node.type, node.operand)
        case t.TupleLiteral():
            return _list("tuple", *node.elements)
        case t.RecordLiteral():
            return f"(record {' '.join(f'{name}={shape(one)}' for name, one in node.fields)})"
        case t.CallExpression():
            return _list(f"{node.name}()", *node.arguments)
        case t.Comptime():
            return _list("comptime", node.operand)
        case t.BlockExpression():
            inner = [shape(one) for one in node.statements]
            inner += [] if node.value is None else [f"=> {shape(node.value)}"]
            return "{" + "; ".join(inner) + "}"
        case t.ExpressionStatement():
            return shape(node.expression)
        case t.Discard():
            return _list("_ =", node.expression)
        case t.Declaration():
            return _list("let", node.variable, node.type, node.value)
        case t.Assignment():
            return _list(node.operator if node.operator == "=" else f"{node.operator}=",
                         node.target, node.value)  # fmt: skip
        case t.Unroll():
            return _list("unroll", node.count, node.body)
        case t.While():
            return _list("while", node.condition, node.body)
        case t.Range():
            return f"{shape(node.start)}..{shape(node.end)}"
        case t.For():
            return _list("for", node.variable, node.over, node.body)
        case t.Jump():
            return node.kind if node.value is None else _list(node.kind, node.value)
    raise AssertionError(node)


def _list(word: str, *nodes: object) -> str:
    return f"({' '.join([word, *(shape(one) for one in nodes)])})"
