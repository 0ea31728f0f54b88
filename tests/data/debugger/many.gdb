break hidden
break grow
break geo::Shape::grow
tbreak Shape::Shape
break geo::Shape::grow(int)
break many.h:9
break push
break Stack<int>::push
break largest
break largest<int>
break twice
break geo::twice(long)
break many.cpp:53
break many_second.cpp:hidden
break many_second.cpp:nosuch
break -function area
break -qualified area
break main
break nosuch
break many.cpp:900
break nosuch.c:3
info breakpoints
run
info line largest
info line geo::twice(long)
info line many.cpp:23
info line many.cpp:26
info line many.cpp:55
info breakpoints
bt
continue
disable 1.2
condition 1 n == 2
condition 2 nosuch
condition 3 by > 1.25 && width_ > 2
ignore 2 1
info breakpoints
continue
continue
bt
info breakpoints
enable 1.2
continue
delete 2
disable 3.1
disable 3.1-2
enable 3
info breakpoints
disable 18
continue
disable 77.1
disable 1.9
enable 1.0
enable 1.x
condition 1.1 n
delete 13
delete 14
clear push
clear many.h:15
continue
continue
continue
continue
info breakpoints
tbreak hidden if n == 2
enable 1.2
condition 1
disable 1.1
continue
continue
delete
run
