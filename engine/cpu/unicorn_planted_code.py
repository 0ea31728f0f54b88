"""Host machine code that has the processor fetch breakpoints, with the instructions beside it.

`engine.cpu.unicorn_planted` places it. Each piece gets the address of a `PlantedRecord`, whose
offsets stand in the code, and goes on in the code of `unicorn_system_code` with the address of
that one's record. The offsets of the pinned build's CPUState and env are those of that module, and
rip 0x80 in env.
"""

from typing import Final

# void block(uc, address, size, PlantedRecord *record)
#   rdi            rsi      edx   rcx
# A block in the window of slots is no block of the machine's: it is not counted, and no interrupt
# comes there. Nor is the one behind a copy, where the original's block would go on; a copy that
# has ended its block is one that a block begins behind. A repeated instruction comes back to the
# beginning of its slot: the second time it is led to its own place again.
BLOCK: Final = bytes.fromhex(
    "4889f0"  # mov rax, rsi
    "482b4130"  # sub rax, [rcx+48]
    "483b4138"  # cmp rax, [rcx+56]
    "721f"  # jb own
    "4883794000"  # cmp qword ptr [rcx+64], 0
    "7509"  # jne resume
    # pass:
    "488b4108"  # mov rax, [rcx+8]
    "488b09"  # mov rcx, [rcx]
    "ffe0"  # jmp rax
    # resume:
    "483b7140"  # cmp rsi, [rcx+64]
    "48c7414000000000"  # mov qword ptr [rcx+64], 0
    "75e9"  # jne pass
    "c3"  # ret
    # own:
    "40f6c61f"  # test sil, 31
    "7409"  # je start
    "48c7414000000000"  # mov qword ptr [rcx+64], 0
    "c3"  # ret
    # start:
    "483b7148"  # cmp rsi, [rcx+72]
    "7532"  # jne leave
    "48ff4950"  # dec qword ptr [rcx+80]
    "792c"  # jns leave
    "48c7414800000000"  # mov qword ptr [rcx+72], 0
    "488b4158"  # mov rax, [rcx+88]
    "488b7928"  # mov rdi, [rcx+40]
    "48898780000000"  # mov [rdi+0x80], rax
    "488b7920"  # mov rdi, [rcx+32]
    "c787a0810000ffffffff"  # mov dword ptr [rdi+0x81a0], -1
    "4883ec08"  # sub rsp, 8
    "ff5160"  # call [rcx+96]
    # leave:
    "c3"  # ret
)

# void exception(uc, number, PlantedRecord *record)
#   rdi                esi     rdx
# A breakpoint, and whatever is raised in the window, is asked about; what is not taken is the
# guest's. No frame of Python's lies below the delivery.
EXCEPTION: Final = bytes.fromhex(
    "83fe03"  # cmp esi, 3
    "741e"  # je ask
    "488b4228"  # mov rax, [rdx+40]
    "488b8080000000"  # mov rax, [rax+0x80]
    "482b4230"  # sub rax, [rdx+48]
    "483b4238"  # cmp rax, [rdx+56]
    "7209"  # jb ask
    # pass:
    "488b4210"  # mov rax, [rdx+16]
    "488b12"  # mov rdx, [rdx]
    "ffe0"  # jmp rax
    # ask:
    "57"  # push rdi
    "56"  # push rsi
    "52"  # push rdx
    "89f7"  # mov edi, esi
    "ff5268"  # call [rdx+104]
    "5a"  # pop rdx
    "5e"  # pop rsi
    "5f"  # pop rdi
    "85c0"  # test eax, eax
    "74e8"  # je pass
    "c3"  # ret
)

# bool invalid(uc, PlantedRecord *record)
#   rdi              rsi
# Likewise where there is no such instruction.
INVALID: Final = bytes.fromhex(
    "488b4628"  # mov rax, [rsi+40]
    "488b8080000000"  # mov rax, [rax+0x80]
    "482b4630"  # sub rax, [rsi+48]
    "483b4638"  # cmp rax, [rsi+56]
    "7314"  # jae pass
    "57"  # push rdi
    "56"  # push rsi
    "4883ec08"  # sub rsp, 8
    "bf06000000"  # mov edi, 6
    "ff5668"  # call [rsi+104]
    "4883c408"  # add rsp, 8
    "5e"  # pop rsi
    "5f"  # pop rdi
    # pass:
    "488b4618"  # mov rax, [rsi+24]
    "488b36"  # mov rsi, [rsi]
    "ffe0"  # jmp rax
)

# Behind `mov rax, record`:
# uint8_t cpu_ldub_code(env, address)
#   eax                 rdi  rsi
# The translator's load of a byte of code. Where a breakpoint is planted that is what it gets, once
# the byte itself could be loaded: in 2^19 bits, and where one is set in a table of addresses, as
# the blocks of `unicorn_places` are looked up.
FETCH: Final = bytes.fromhex(
    "483b7828"  # cmp rdi, [rax+40]
    "7545"  # jne other
    "89f1"  # mov ecx, esi
    "c1e905"  # shr ecx, 5
    "81e1ff3f0000"  # and ecx, 0x3fff
    "488b5070"  # mov rdx, [rax+112]
    "8b0c8a"  # mov ecx, [rdx+rcx*4]
    "0fa3f1"  # bt ecx, esi
    "732e"  # jae other
    "4c8b4078"  # mov r8, [rax+120]
    "48b9157c4a7fb979379e"  # movabs rcx, 0x9e3779b97f4a7c15
    "480fafce"  # imul rcx, rsi
    "48c1e920"  # shr rcx, 32
    # next:
    "48238880000000"  # and rcx, [rax+128]
    "498b14c8"  # mov rdx, [r8+rcx*8]
    "4839f2"  # cmp rdx, rsi
    "740e"  # je found
    "48ffc1"  # inc rcx
    "4885d2"  # test rdx, rdx
    "75e8"  # jne next
    # other:
    "ffa088000000"  # jmp [rax+136]
    # found:
    "4883ec08"  # sub rsp, 8
    "ff9088000000"  # call [rax+136]
    "b8cc000000"  # mov eax, 0xcc
    "4883c408"  # add rsp, 8
    "c3"  # ret
)

# Behind `mov rax, record`:
# bool x86_cpu_tlb_fill(cpu, address, size, access, mmu index, probe, return address)
#   eax                 rdi  rsi      edx   ecx     r8d        r9d    [rsp+8]
# A page of the window is there for fetches (2) from anywhere but user level (1), and in no page
# table: it is put into the TLB with the right to be executed (4) alone.
FILL: Final = bytes.fromhex(
    "83f902"  # cmp ecx, 2
    "7550"  # jne other
    "4183f801"  # cmp r8d, 1
    "744a"  # je other
    "4989f2"  # mov r10, rsi
    "4c2b5030"  # sub r10, [rax+48]
    "4c3b5038"  # cmp r10, [rax+56]
    "733d"  # jae other
    "483b7820"  # cmp rdi, [rax+32]
    "7537"  # jne other
    "4981e200f0ffff"  # and r10, -4096
    "488b90a0000000"  # mov rdx, [rax+160]
    "4c01d2"  # add rdx, r10
    "4881e600f0ffff"  # and rsi, -4096
    "b904000000"  # mov ecx, 4
    "41b900100000"  # mov r9d, 4096
    "4883ec08"  # sub rsp, 8
    "ff9098000000"  # call [rax+152]
    "b801000000"  # mov eax, 1
    "4883c408"  # add rsp, 8
    "c3"  # ret
    # other:
    "ffa090000000"  # jmp [rax+144]
)
