program p
integer::i
integer(8)::s
s=0
!$omp parallel do reduction(+:s)
do i=1,1000
s=s+i*i
end do
print '(I12)',s
open(10,file='out.dat',form='unformatted')
write(10) s
close(10)
end program
