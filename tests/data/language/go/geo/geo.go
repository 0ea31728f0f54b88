// Package geo has types of another package.
package geo

// Shape is what has an area.
type Shape interface{ Area() float64 }

// Rect is one.
type Rect struct{ W, H float64 }

// Area of it.
//
//go:noinline
func (r Rect) Area() float64 { return r.W * r.H }

// Circle is one, by pointer.
type Circle struct {
	Radius float64
	Tags   []string
}

// Area of it.
//
//go:noinline
func (c *Circle) Area() float64 { return 3 * c.Radius * c.Radius }

// Count of calls.
var Count = 41
