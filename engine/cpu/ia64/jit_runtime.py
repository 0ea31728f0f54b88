"""LLVM text of what is too long to stand at every use: the ALAT, and fused operations."""

from typing import Final

from engine.cpu.ia64.alat import ENTRIES
from engine.cpu.ia64.jit_fused import FUSED_TEXT
from engine.cpu.ia64.jit_words import (
    ALAT_COUNT,
    ALAT_FILTER,
    ALAT_INSERT,
    ALAT_STORED,
    ALAT_TABLE,
    ALAT_TAKE,
    FUSED,
)

FUNCTIONS: Final = {
    FUSED: "fused",
    ALAT_INSERT: "alat_insert",
    ALAT_TAKE: "alat_take",
    ALAT_STORED: "alat_stored",
}
"""Functions by the word that has their address."""

_ALAT: Final = f"""
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

; The bits of the filter for what lies from one address to another, at most 16 bytes behind it.
define private i64 @alat_bits(i64 %start, i64 %end) alwaysinline nounwind {{
  %last = sub i64 %end, 1
  %middle0 = add i64 %start, 8
  %inside = icmp ult i64 %middle0, %end
  %middle = select i1 %inside, i64 %middle0, i64 %start
  %g1 = lshr i64 %start, 3
  %g2 = lshr i64 %last, 3
  %g3 = lshr i64 %middle, 3
  %a1 = and i64 %g1, 63
  %a2 = and i64 %g2, 63
  %a3 = and i64 %g3, 63
  %b1 = shl i64 1, %a1
  %b2 = shl i64 1, %a2
  %b3 = shl i64 1, %a3
  %b12 = or i64 %b1, %b2
  %bits = or i64 %b12, %b3
  ret i64 %bits
}}

; Whether a register has an entry, which goes if `clear` is not 0.
define i64 @alat_take(ptr %s, i64 %key, i64 %clear) nounwind {{
  %countp = getelementptr i64, ptr %s, i64 {ALAT_COUNT}
  %filterp = getelementptr i64, ptr %s, i64 {ALAT_FILTER}
  %table = getelementptr i64, ptr %s, i64 {ALAT_TABLE}
  %count = load i64, ptr %countp
  br label %look

look:
  %at = phi i64 [ 0, %0 ], [ %next, %other ]
  %over = icmp uge i64 %at, %count
  br i1 %over, label %none, label %test

test:
  %entry = getelementptr [3 x i64], ptr %table, i64 %at
  %found = load i64, ptr %entry
  %same = icmp eq i64 %found, %key
  br i1 %same, label %held, label %other

other:
  %next = add i64 %at, 1
  br label %look

none:
  ret i64 0

held:
  %keeps = icmp eq i64 %clear, 0
  br i1 %keeps, label %done, label %remove

remove:
  %behind = add i64 %at, 1
  %rest = getelementptr [3 x i64], ptr %table, i64 %behind
  %left = sub i64 %count, %behind
  %size = mul i64 %left, 24
  call void @llvm.memmove.p0.p0.i64(ptr %entry, ptr %rest, i64 %size, i1 false)
  %fewer = sub i64 %count, 1
  store i64 %fewer, ptr %countp
  %empty = icmp eq i64 %fewer, 0
  br i1 %empty, label %clean, label %done

clean:
  store i64 0, ptr %filterp
  br label %done

done:
  ret i64 1
}}

; A register gets an entry; the oldest one goes where there is no room.
define void @alat_insert(ptr %s, i64 %key, i64 %start, i64 %end) nounwind {{
  %old = call i64 @alat_take(ptr %s, i64 %key, i64 1)
  %countp = getelementptr i64, ptr %s, i64 {ALAT_COUNT}
  %filterp = getelementptr i64, ptr %s, i64 {ALAT_FILTER}
  %table = getelementptr i64, ptr %s, i64 {ALAT_TABLE}
  %count = load i64, ptr %countp
  %full = icmp uge i64 %count, {ENTRIES}
  br i1 %full, label %shift, label %put

shift:
  %second = getelementptr i64, ptr %table, i64 3
  call void @llvm.memmove.p0.p0.i64(ptr %table, ptr %second, i64 {24 * (ENTRIES - 1)}, i1 false)
  br label %put

put:
  %at = phi i64 [ %count, %0 ], [ {ENTRIES - 1}, %shift ]
  %entry = getelementptr [3 x i64], ptr %table, i64 %at
  %entry1 = getelementptr i64, ptr %entry, i64 1
  %entry2 = getelementptr i64, ptr %entry, i64 2
  store i64 %key, ptr %entry
  store i64 %start, ptr %entry1
  store i64 %end, ptr %entry2
  %more = add i64 %at, 1
  store i64 %more, ptr %countp
  %bits = call i64 @alat_bits(i64 %start, i64 %end)
  %filter = load i64, ptr %filterp
  %filled = or i64 %filter, %bits
  store i64 %filled, ptr %filterp
  ret void
}}

; A store: the entries that it overlaps go.
define void @alat_stored(ptr %s, i64 %start, i64 %end) nounwind {{
  %countp = getelementptr i64, ptr %s, i64 {ALAT_COUNT}
  %filterp = getelementptr i64, ptr %s, i64 {ALAT_FILTER}
  %table = getelementptr i64, ptr %s, i64 {ALAT_TABLE}
  %count = load i64, ptr %countp
  br label %look

look:
  %at = phi i64 [ 0, %0 ], [ %next, %passed ]
  %to = phi i64 [ 0, %0 ], [ %tonext, %passed ]
  %filter = phi i64 [ 0, %0 ], [ %filternext, %passed ]
  %over = icmp uge i64 %at, %count
  br i1 %over, label %done, label %test

test:
  %entry = getelementptr [3 x i64], ptr %table, i64 %at
  %entry1 = getelementptr i64, ptr %entry, i64 1
  %entry2 = getelementptr i64, ptr %entry, i64 2
  %key = load i64, ptr %entry
  %first = load i64, ptr %entry1
  %behind = load i64, ptr %entry2
  %before = icmp ult i64 %first, %end
  %after = icmp ult i64 %start, %behind
  %overlaps = and i1 %before, %after
  br i1 %overlaps, label %passed, label %keep

keep:
  %kept = getelementptr [3 x i64], ptr %table, i64 %to
  %kept1 = getelementptr i64, ptr %kept, i64 1
  %kept2 = getelementptr i64, ptr %kept, i64 2
  store i64 %key, ptr %kept
  store i64 %first, ptr %kept1
  store i64 %behind, ptr %kept2
  %bits = call i64 @alat_bits(i64 %first, i64 %behind)
  %filtermore = or i64 %filter, %bits
  %tomore = add i64 %to, 1
  br label %passed

passed:
  %tonext = phi i64 [ %to, %test ], [ %tomore, %keep ]
  %filternext = phi i64 [ %filter, %test ], [ %filtermore, %keep ]
  %next = add i64 %at, 1
  br label %look

done:
  store i64 %to, ptr %countp
  store i64 %filter, ptr %filterp
  ret void
}}
"""

RUNTIME: Final = FUSED_TEXT + _ALAT
