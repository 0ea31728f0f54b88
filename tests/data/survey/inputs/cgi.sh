echo 'Content-Type: text/plain'
echo
echo cgi $REQUEST_METHOD
