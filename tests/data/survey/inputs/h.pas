program p; var i,s:longint; begin s:=0; for i:=1 to 100 do s:=s+i; writeln(s); end.
