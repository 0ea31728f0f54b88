import socket,sys,time
for i in range(300):
    try: socket.create_connection(("127.0.0.1",int(sys.argv[1]))).close(); break
    except OSError: time.sleep(.05)
else: print("never up")
