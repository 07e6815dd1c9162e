package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/oncegate/oncegate/configs"
	"github.com/oncegate/oncegate/insight"
)

// printAdvice prints what the TTL lab of the console shows.
func printAdvice(w io.Writer, a *insight.TTL, redisAway bool) error {
	if redisAway {
		fmt.Fprintln(w, "Redis is away: what follows holds when it is back.")
	}
	r := &a.Retries
	fmt.Fprintf(w, "seen in %s: %d retries (answered by the process %d, Redis %d, the database %d)", seconds(a.ObservedSeconds), r.Count, r.Process, r.Redis, r.MySQL)
	if r.Count > 0 {
		fmt.Fprintf(w, "\nhalf of them within %s, 99 %% within %s, the oldest after %s", seconds(r.P50), seconds(r.P99), seconds(r.Oldest))
	}
	fmt.Fprintf(w, "\n%.3g new keys per second, ", a.KeysPerSecond)
	if a.BytesPerKey == nil {
		fmt.Fprint(w, "whose size in Redis is not measured yet\n\n")
	} else {
		fmt.Fprintf(w, "%.0f bytes in Redis per key (%d measured)\n\n", a.BytesPerKey.BytesPerKey, a.BytesPerKey.Entries)
	}
	if err := printForecasts(w, a); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nNothing is known of TTLs beyond %s.\n", seconds(a.KnownUntilSeconds))
	if a.Knee == nil {
		_, err := fmt.Fprintf(w, "No TTL that is known answers %s of the retries before the database.\n", share(a.Target))
		return err
	}
	if a.KneeRaised {
		_, err := fmt.Fprintf(w, "%s of the retries are answered before the database from any TTL that the gateway accepts: longer than ttl.in_progress, %s, such as %s.\n",
			share(a.Target), seconds(a.LongerThanSeconds), seconds(a.Knee.TTLSeconds))
		return err
	}
	_, err := fmt.Fprintf(w, "%s of the retries are answered before the database from a TTL of %s on.\n", share(a.Target), seconds(a.Knee.TTLSeconds))
	return err
}

func printForecasts(w io.Writer, a *insight.TTL) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TTL\tBEFORE THE DATABASE\t95 % BOUNDS\tRETRIES FOR THE DATABASE\tREDIS\t")
	inForce := false
	row := func(f *insight.Forecast, note string) {
		before, bounds, load := "not known", "", "not known"
		if f.Known {
			before, bounds = share(f.Share), share(f.ShareLow)+" to "+share(f.ShareHigh)
			load = strconv.FormatFloat(f.MySQLPerSecond, 'g', 3, 64) + "/s"
		}
		memory := ""
		if a.BytesPerKey != nil {
			memory = size(f.RedisBytes)
		}
		if note == "" && f.TTLSeconds <= a.LongerThanSeconds {
			note = "refused: not longer than ttl.in_progress"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", seconds(f.TTLSeconds), before, bounds, load, memory, note)
	}
	for i := range a.Forecasts {
		f := &a.Forecasts[i]
		if f.TTLSeconds >= a.CurrentTTLSeconds && !inForce {
			inForce = true
			row(&a.Current, "in force")
			if f.TTLSeconds == a.CurrentTTLSeconds {
				continue
			}
		}
		row(f, "")
	}
	if !inForce {
		row(&a.Current, "in force")
	}
	return table.Flush()
}

// seconds says a time as the configuration writes it.
func seconds(n float64) string {
	d := time.Duration(math.MaxInt64) // printed as what it is: more than can be said
	if n < d.Seconds() {
		d = time.Duration(n * float64(time.Second))
	}
	switch {
	case d == math.MaxInt64:
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	default:
		d = d.Round(time.Millisecond)
	}
	return configs.FormatDuration(d)
}

// share keeps what matters near the ends.
func share(s float64) string {
	digits := 1
	if s > .99 && s < 1 || s > 0 && s < .01 {
		digits = 2
	}
	return strconv.FormatFloat(s*100, 'f', digits, 64) + " %"
}

func size(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + " " + units[i]
}
