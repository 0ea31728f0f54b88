global _start
section .text
_start: mov eax,1
mov edi,1
lea rsi,[rel m]
mov edx,3
syscall
mov eax,60
mov edi,5
syscall
section .data
m: db 'hi',10,0
