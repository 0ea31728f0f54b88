catch throw
catch catch
catch rethrow
tcatch throw
info breakpoints
run
bt
info breakpoints
continue
continue
continue
continue
continue
continue
continue
info breakpoints
