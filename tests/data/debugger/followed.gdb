break bump
run
watch p->id
watch q->id
continue
continue
continue
continue
continue
continue
continue
info watchpoints
continue
continue
continue
continue
watch *(int *)0
info watchpoints
continue
