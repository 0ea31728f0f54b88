// Package lanes has things that another package looks at.
package lanes

// Lane is a road for trucks.
type Lane struct {
	Name   string
	trucks []Truck
	Open   bool
}

// Truck is on a lane.
type Truck struct {
	Plate string
	Load  int
}

// State of a lane.
type State int

// States of lanes.
const (
	Closed State = iota
	Moving
	Jammed
)

// Default is the lane that there is without any.
var Default = &Lane{Name: "default", trucks: []Truck{{"A 1", 5}, {"B 2", 7}}}

var hidden = map[State]string{Moving: "moving"}

// Limit is the number of trucks that a lane holds.
const Limit = 3

// Total is the load of all.
//
//go:noinline
func (l *Lane) Total(seen func(Truck)) (sum int) {
	for i, t := range l.trucks {
		sum += t.Load
		if i == 1 {
			seen(t)
		}
	}
	return sum + len(hidden) - 1
}
