with Ada.Text_IO; procedure H is task T; task body T is begin Ada.Text_IO.Put_Line("task"); end T; begin null; end H;
