source calc.words
help shownode
show user count
break evaluate
break Binary::value if op_ == Binary::Over
break DivideByZero::DivideByZero
rbreak ^Reader::
info breakpoints
delete 4-10
info functions Reader
info types Op
list Binary::value
list 30,34
info line Binary::value
run
info args
print text
print scope
print scope.names
print scope.names["y"]
print scope.names.size()
print scope.outer
print *scope.outer
print scope.outer->names
print *scope.outer->outer
next
next
info locals
next
print root
print *root
print root->kind()
print root->size()
print root.get()
print *root.get()
set print object on
print root.get()
print *root.get()
whatis root.get()
ptype root.get()
info vtbl root.get()
shownode root
shownode root 1
count
print $n
set print vtbl on
print *root.get()
set print vtbl off
set print object off
print dynamic_cast<Binary *>(root.get())
print *dynamic_cast<Binary *>(root.get())
print dynamic_cast<Constant *>(root.get())
print ((Binary *)root.get())->op_
print/c ((Binary *)root.get())->op_
print/d ((Binary *)root.get())->op_
print ((Binary *)root.get())->left_
print *((Binary *)root.get())->left_
print ((Binary *)root.get())->right_->kind()
print Node::made
print &Node::made
ptype Node
ptype Binary
ptype Binary::Op
ptype/o Constant
whatis Binary::value
print &Binary::value
print Binary::Plus
print sizeof(Binary)
step
bt
info frame
print *this
print this->op_
step
step
bt
finish
finish
next
print a
print b
ignore 1 1
continue
bt
up
print *this
print op_
print column_
continue
print column
bt
print this
print *this
finish
up
print b
info locals
catch catch
continue
bt 2
finish
frame function main
next
next
print zero
print zero.what()
print zero.column
info breakpoints
disable
enable once 1
info breakpoints
continue
info breakpoints
print text
tbreak Scope::find
continue
continue
print name
print this->names
print names.size()
print outer
print outer->names
info args
return
bt
print names.begin()
print lines
catch throw
continue
bt -1
info catch
delete
tbreak calc.cpp:170
continue
print other
print other.what()
print errors
print errors += 5
print lines[1]
print lines.size()
print global
print inner
print &inner == &global
print *inner.outer
print line
info locals
kill
info program
