package store

// attempted is a group and how often it was tried.
type attempted struct {
	group []*pending
	times int
	// locked says that somebody had a row that it needs when it was tried last, and
	// let that others were let go first since.
	locked, let bool
	// passing decides those whose rows nobody has, and leaves the others.
	passing bool
}

// next takes the first group of the list, or what has gathered meanwhile when that
// one would wait for a row: at least once, and for as long as such a wait took. It
// ends where as many groups have come together as may wait in the queue.
func (w *worker) next(todo []attempted) (attempted, []attempted) {
	a := &todo[0]
	if a.locked && len(todo) <= w.s.o.Queue && (!a.let || w.s.o.Now().Before(w.theirs)) {
		if p := w.waiting(); p != nil {
			a.let = true
			return attempted{group: w.gather(p)}, todo
		}
	}
	return *a, todo[1:]
}

// appendRest adds those whom an attempt has left without an answer. They have an
// account now; or they were passed over, and stay together while some of so many
// were not: most of them were locked by others for a moment only, and one by one
// they would be overtaken by those who come. When nobody's row was free, each user
// waits for their own.
func (a attempted) appendRest(todo []attempted, tried int) []attempted {
	switch {
	case len(a.group) == 0:
		return todo
	case !a.passing:
		return append(todo, attempted{group: a.group})
	case len(a.group) < tried:
		return append(todo, attempted{group: a.group, times: a.times, locked: true})
	}
	for _, theirs := range byUser(a.group) {
		todo = append(todo, attempted{group: theirs, locked: true})
	}
	return todo
}

// byUser parts a group by its users: the commands of one need the same row, and stay
// in their order.
func byUser(group []*pending) (users [][]*pending) {
	at := make(map[string]int, len(group))
	for _, p := range group {
		i, known := at[p.cmd.UserID]
		if !known {
			i = len(users)
			at[p.cmd.UserID] = i
			users = append(users, nil)
		}
		users[i] = append(users[i], p)
	}
	return users
}
