ptype/o struct Nest
ptype/o nest.one
ptype/o Nest::Inner
ptype/o w
ptype/o V
ptype/o pr
ptype/o Bits
ptype/o U
ptype/o Last
ptype/o Flex
ptype/o Hole
ptype/o Empty
ptype/ox U
ptype/ox Bits
ptype/od Bits
ptype/tmo pr
ptype/ot pr
ptype/o &nest
ptype/o nest.two
ptype/o Nest::E
ptype/o int*
ptype/t pr
ptype/m pr
ptype/m w
ptype/mt pr
ptype/T pr
ptype/M w
ptype/z w
whatis/o w
ptype pr
ptype w
ptype Nest
ptype U
ptype Last
ptype bits
ptype/x w
whatis/m w
ptype/o
ptype
ptype/
ptype/o UseHole
ptype/ox uh
ptype/o tp
ptype/r tp
ptype tp
ptype uh
