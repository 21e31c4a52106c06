-- Apart from the constraint itself: sessions stay readable and writable while the rows are read.
ALTER TABLE sessions VALIDATE CONSTRAINT sessions_method;
