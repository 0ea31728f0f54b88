ptype Base
ptype Animal
ptype Box<int>
ptype Mixed
ptype Plain
ptype Mostly
ptype Closed
ptype Open
ptype Animal::Tag
ptype Animal::Mood
whatis Animal::Mood
break 112
run
ptype cat
ptype &cat
ptype box
whatis cat
ptype tag
