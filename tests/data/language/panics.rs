// Panics of every kind that the library tells apart, each caught.
use std::panic;

#[derive(Debug)]
struct Point { _x: i32 }

#[inline(never)]
fn pick(values: &[i32], at: usize) -> i32 { values[at] }

#[inline(never)]
fn half(n: i32) -> Result<i32, String> {
    if n % 2 == 0 { Ok(n / 2) } else { Err(format!("odd {}", n)) }
}

fn main() {
    let count = std::env::args().count() as i32;
    let name = String::from("apple");
    let _ = panic::catch_unwind(|| panic!("plain words"));
    let _ = panic::catch_unwind(|| pick(&[1, 2], 5));
    let _ = panic::catch_unwind(|| half(3).unwrap());
    let _ = panic::catch_unwind(|| None::<i32>.expect("nothing there"));
    let _ = panic::catch_unwind(|| 10 / (count - 1));
    let _ = panic::catch_unwind(|| assert_eq!(count, -7, "of {}", &name));
    let _ = panic::catch_unwind(|| panic!("{} {} {} {}{:?}", name, count == 1, 'c', count, count));
    let _ = panic::catch_unwind(|| panic!("a point {:?}, a width {:>5}", Point { _x: count }, count));
    let _ = panic::catch_unwind(|| panic::panic_any(42u64));
}
