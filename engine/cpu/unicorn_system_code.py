"""Host machine code of a machine's callbacks, with the instructions beside it.

`engine.cpu.unicorn_system` places it. Each piece gets the address of a `MachineRecord`, whose
offsets stand in the code, as do those of the pinned build's CPUState (exception_index 0x81a0, env
0x8a50) and env (eflags 0x88, hflags 0xb0, exception_is_int 0x150c): a machine begins only where
the code of functions that use such offsets is the known one.

No frame of Python's may lie below what raises an exception in the guest: a fault while it is
delivered leaves by longjmp.
"""

from typing import Final

# void block(uc, address, size, MachineRecord *record)
#   rdi            rsi      edx   rcx
# Notes a block's bounds and counts it. At the limit, and while an interrupt waits that the guest
# takes, it asks, and from `until` on in any case; a vector is delivered, -1 is nothing, and -2
# stops in front of the block, which is not counted.
# Then it looks the address up where places are told (`engine.cpu.unicorn_places`): in 2^19 bits,
# and where its bit is set in a table, which has an empty word.
BLOCK: Final = bytes.fromhex(
    "4889b1b0000000"  # mov [rcx+176], rsi  begin
    "8991b8000000"  # mov [rcx+184], edx  size
    "488b01"  # mov rax, [rcx]
    "48ffc0"  # inc rax
    "488901"  # mov [rcx], rax  blocks
    "483b4108"  # cmp rax, [rcx+8]  limit
    "7358"  # jae due
    # watch:
    "488b8190000000"  # mov rax, [rcx+144]  watch
    "4885c0"  # test rax, rax
    "7413"  # je done
    "89f2"  # mov edx, esi
    "c1ea05"  # shr edx, 5
    "81e2ff3f0000"  # and edx, 0x3fff
    "8b0490"  # mov eax, [rax+rdx*4]
    "0fa3f0"  # bt eax, esi  the bit of the address modulo 32
    "7201"  # jb seek
    # done:
    "c3"  # ret
    # seek:
    "4c8b8198000000"  # mov r8, [rcx+152]  table
    "48b8157c4a7fb979379e"  # movabs rax, 0x9e3779b97f4a7c15
    "480fafc6"  # imul rax, rsi
    "48c1e820"  # shr rax, 32
    # next:
    "482381a0000000"  # and rax, [rcx+160]  mask
    "498b14c0"  # mov rdx, [r8+rax*8]
    "4839f2"  # cmp rdx, rsi
    "7409"  # je found
    "48ffc0"  # inc rax
    "4885d2"  # test rdx, rdx
    "75e8"  # jne next
    "c3"  # ret
    # found:
    "ffa1a8000000"  # jmp qword ptr [rcx+168]  watched(uc, address, size, record)
    # due:
    "483b81c0000000"  # cmp rax, [rcx+192]  until
    "7327"  # jae ask
    "4883791000"  # cmp qword ptr [rcx+16], 0  an interrupt waits
    "7420"  # je ask
    "488b5118"  # mov rdx, [rcx+24]  env
    "f7828800000000020000"  # test dword ptr [rdx+0x88], 0x200  IF
    "7488"  # je watch
    "f782b000000008000000"  # test dword ptr [rdx+0xb0], 8  the shadow of sti and of mov ss
    "0f8578ffffff"  # jne watch
    # ask:
    "53"  # push rbx
    "56"  # push rsi
    "51"  # push rcx
    "4889cb"  # mov rbx, rcx
    "ff5128"  # call qword ptr [rcx+40]
    "83f8ff"  # cmp eax, -1
    "743c"  # je over
    "7c1f"  # jl stop
    "488b7b18"  # mov rdi, [rbx+24]
    "89c6"  # mov esi, eax
    "ba01000000"  # mov edx, 1
    "ff5330"  # call qword ptr [rbx+48]  do_interrupt_x86_hardirq(env, vector, 1)
    "488b7b20"  # mov rdi, [rbx+32]
    "c787a0810000ffffffff"  # mov dword ptr [rdi+0x81a0], -1
    "ff5338"  # call qword ptr [rbx+56]  cpu_loop_exit(cpu)
    # stop:
    "48ff0b"  # dec qword ptr [rbx]
    "488b7b48"  # mov rdi, [rbx+72]
    "ff5350"  # call qword ptr [rbx+80]  uc_emu_stop(uc)
    "488b7b20"  # mov rdi, [rbx+32]
    "c787a081000001000100"  # mov dword ptr [rdi+0x81a0], 0x10001  EXCP_HLT
    "ff5338"  # call qword ptr [rbx+56]  cpu_loop_exit(cpu)
    # over:
    "59"  # pop rcx
    "5e"  # pop rsi
    "5b"  # pop rbx
    "e926ffffff"  # jmp watch
)

# void place(uc, address, size, MachineRecord *record)
#   rdi            rsi      edx   rcx
# Tells of an instruction that is about to be executed; the answer -2 stops in front of it.
PLACE: Final = bytes.fromhex(
    "53"  # push rbx
    "4889cb"  # mov rbx, rcx
    "ff91c8000000"  # call qword ptr [rcx+200]  told(uc, address, size, record)
    "83f8fe"  # cmp eax, -2
    "7402"  # je stop
    "5b"  # pop rbx
    "c3"  # ret
    # stop:
    "488b7b48"  # mov rdi, [rbx+72]
    "ff5350"  # call qword ptr [rbx+80]  uc_emu_stop(uc)
    "488b7b20"  # mov rdi, [rbx+32]
    "c787a081000001000100"  # mov dword ptr [rdi+0x81a0], 0x10001  EXCP_HLT
    "ff5338"  # call qword ptr [rbx+56]  cpu_loop_exit(cpu)
)

# void exception(uc, number, MachineRecord *record)
#   rdi                esi     rdx
EXCEPTION: Final = bytes.fromhex(
    "488b7a20"  # mov rdi, [rdx+32]
    "ff6240"  # jmp qword ptr [rdx+64]          x86_cpu_do_interrupt(cpu)
)

# bool invalid(uc, MachineRecord *record)
#   rdi              rsi
# An instruction that there is not: #UD.
INVALID: Final = bytes.fromhex(
    "53"  # push rbx
    "488b7e20"  # mov rdi, [rsi+32]
    "c787a081000006000000"  # mov dword ptr [rdi+0x81a0], 6
    "c7875c9f000000000000"  # mov dword ptr [rdi+0x9f5c], 0   exception_is_int
    "ff5640"  # call qword ptr [rsi+64]
    "b801000000"  # mov eax, 1
    "5b"  # pop rbx
    "c3"  # ret
)

# void leave(cpu)
#   rdi
# Stops in the middle of what the emulator cannot carry out, the delivery of an exception, too: the
# exception must not be delivered again. The address of cpu_loop_exit is put behind it.
LEAVE: Final = bytes.fromhex(
    "c787a081000001000100"  # mov dword ptr [rdi+0x81a0], 0x10001  EXCP_HLT
    "ff2500000000"  # jmp qword ptr [rip]
)

# The three functions that see to code which is written over. Each begins with `mov rax, record`,
# which is put in front of it, and ends with the library's own function for other engines.

# void tlb_protect_code(uc, ram_addr)
#   rdi                     rsi
# Remember that a page has translations, and have stores to it noticed through all mappings.
PROTECT: Final = bytes.fromhex(
    "483b7848"  # cmp rdi, [rax+72]
    "752c"  # jne other
    "4889f2"  # mov rdx, rsi
    "48c1ea0c"  # shr rdx, 12
    "483b5068"  # cmp rdx, [rax+104]            pages
    "731f"  # jae other
    "488b4858"  # mov rcx, [rax+88]             bits
    "480fab11"  # bts qword ptr [rcx], rdx
    "4881e600f0ffff"  # and rsi, -0x1000
    "48037060"  # add rsi, [rax+96]             the host's address of the guest's memory
    "488b7820"  # mov rdi, [rax+32]
    "ba00100000"  # mov edx, 0x1000
    "ff6070"  # jmp qword ptr [rax+112]         tlb_reset_dirty(cpu, host address, size)
    # other:
    "ff6078"  # jmp qword ptr [rax+120]
)

# void tlb_unprotect_code(uc, ram_addr)
#   rdi                       rsi
UNPROTECT: Final = bytes.fromhex(
    "483b7848"  # cmp rdi, [rax+72]
    "7515"  # jne other
    "4889f2"  # mov rdx, rsi
    "48c1ea0c"  # shr rdx, 12
    "483b5068"  # cmp rdx, [rax+104]
    "7308"  # jae other
    "488b4858"  # mov rcx, [rax+88]
    "480fb311"  # btr qword ptr [rcx], rdx
    # other:
    "ffa080000000"  # jmp qword ptr [rax+128]
)

# void tlb_set_dirty(cpu, vaddr)
#   rdi                 rsi
# Stores to a page are noticed no more: not so while one of its translations is left. The three
# TLBs' (mask, table) are 64 bytes in front of env; an entry has 64 bytes: read, write, code,
# addend, ...
SET_DIRTY: Final = bytes.fromhex(
    "483b7820"  # cmp rdi, [rax+32]
    "755f"  # jne other
    "4889f2"  # mov rdx, rsi
    "4881e200f0ffff"  # and rdx, -0x1000
    "4881ca00040000"  # or rdx, 0x400           TLB_NOTDIRTY
    "4c8d87108a0000"  # lea r8, [rdi+0x8a10]
    "b903000000"  # mov ecx, 3
    # next:
    "4989f1"  # mov r9, rsi
    "49c1e906"  # shr r9, 6
    "4d2308"  # and r9, [r8]
    "4d034808"  # add r9, [r8+8]                its entry
    "493b5108"  # cmp rdx, [r9+8]
    "7526"  # jne another
    "4989f2"  # mov r10, rsi
    "4981e200f0ffff"  # and r10, -0x1000
    "4d035120"  # add r10, [r9+32]
    "4c2b5060"  # sub r10, [rax+96]
    "49c1ea0c"  # shr r10, 12
    "4c3b5068"  # cmp r10, [rax+104]
    "730a"  # jae another
    "4c8b5858"  # mov r11, [rax+88]
    "4d0fa313"  # bt qword ptr [r11], r10
    "720e"  # jb leave
    # another:
    "4983c010"  # add r8, 16
    "ffc9"  # dec ecx
    "75be"  # jne next
    # other:
    "ffa088000000"  # jmp qword ptr [rax+136]
    # leave:
    "c3"  # ret
)
