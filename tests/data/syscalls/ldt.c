#include "guest.h"
#include <asm/ldt.h>
static long ldt(int f,void*p,unsigned long n){return (int)syscall(SYS_modify_ldt,f,p,n);}
int main(){ static unsigned char t[65536+64]; struct user_desc d={0};
#define S(e) printf("%s: %ld\n",#e,(long)(e))
S(ldt(0,t,sizeof t)); S(ldt(0,(void*)8,0)); S(ldt(2,t,sizeof t)); S(ldt(2,t,7)); S(ldt(3,t,1)); S(ldt(1,&d,15)); S(ldt(0x11,&d,16)); 
d.entry_number=8192; S(ldt(0x11,&d,16)); d.entry_number=3; d.base_addr=0x12345678; d.limit=0xabcde; d.seg_32bit=1; d.limit_in_pages=1; d.useable=1; S(ldt(0x11,&d,16));
d.entry_number=4; S(ldt(1,&d,16)); d.contents=3; S(ldt(0x11,&d,16)); S(ldt(1,&d,16)); d.seg_not_present=1; S(ldt(0x11,&d,16)); d.contents=1; d.read_exec_only=1; d.entry_number=5; S(ldt(0x11,&d,16)); d.contents=2; d.seg_not_present=0; d.seg_32bit=0; d.entry_number=6; S(ldt(0x11,&d,16));
S(ldt(0,t,sizeof t)); for(int i=0;i<8;i++){ for(int b=7;b>=0;b--) printf("%02x",t[8*i+b]); puts(""); } S(ldt(0,t,9)); S(ldt(0x11,(void*)8,16)); S(ldt(0,(void*)8,16)); printf("%lx\n", syscall(SYS_modify_ldt,3,t,1));
return 0;}
