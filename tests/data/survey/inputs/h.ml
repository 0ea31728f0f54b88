let () = let t = Unix.fork () in if t = 0 then (print_endline "child"; exit 4) else match Unix.waitpid [] t with _, Unix.WEXITED n -> Printf.printf "%d\n" n | _ -> ()
