info line probe::area
break probe::Probe::read
info breakpoints
run
bt
p at
p *self
p self.label
p self.reads
p self.samples
p self.log
p self.index
finish
p $.value
continue
next
next
p sample
p sample.at
ptype sample
whatis sample
next
next
p self.samples
p self.reads
p self.log
next
p self.index
delete
break probe::area
continue
p shape
p *shape
continue
p *shape
next
next
p radius
continue
p *shape
ptype *shape
whatis *shape
ptype probe::Shape
delete
break probe::largest<i64>
tbreak probe::largest<f32>
info breakpoints
continue
bt
p values
p values.length
p values[1]
next
p best
info args
finish
continue
p values
delete
break probe::add_up
continue
info threads
thread
p amount
p shared
bt 1
next
next
p guard
p *guard
thread apply all -q p $_thread
finish
delete
break probe::risky
continue
p divisor
bt 2
p divisor == 0
next
delete
tbreak 101
continue
p low
p areas
p first
p first.value
p second.at + 1
p probe
p caught
p shared
p big
p wide
p probe.label
whatis probe
ptype probe::Sample<i16>
p first.at as u8
p &first
p *&first
p areas[0] + areas[1]
p moved > 40 && low == 4
p moved > 50 || fine != 12
p 0x10 | 3
p 1 << 4
p 1u8
p 2.5f32
p -1i32
p 1_000
continue
