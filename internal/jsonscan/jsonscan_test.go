package jsonscan

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func walk(text string) error {
	s := New([]byte(text))
	if _, err := s.Value(); err != nil {
		return err
	}
	return s.End()
}

// TestSyntaxIsThatOfEncodingJSON compares with the standard library on texts at the edges of the grammar.
func TestSyntaxIsThatOfEncodingJSON(t *testing.T) {
	t.Parallel()
	valid := []string{
		`{}`, `[]`, `""`, `0`, `-0`, `1.5e+10`, `2E-1`, `true`, `false`, `null`, " \t\r\n{} ", `[1,[2,{"a":[]}],"x"]`,
		`{"a":1,"a":2}`, `"é😀\"\\\/\b\f\n\r\t"`, `"\ud800"`, `{"":""}`, `"` + "\x7f" + `"`,
	}
	invalid := []string{
		``, ` `, `{`, `}`, `[`, `[1,]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{'a':1}`, `01`, `-`, `1.`, `.5`, `1e`, `+1`,
		`tru`, `nul`, `truex`, `"`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", "\"\x00\"", `{} {}`, `[1 2]`, `NaN`, `"\`, "\ufeff{}",
	}
	for _, text := range valid {
		if err := walk(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range invalid {
		if err := walk(text); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: got %v, want ErrSyntax", text, err)
		}
	}
}

func TestDeepNestingIsRefused(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}} {
		inner := "1"
		if err := walk(strings.Repeat(pair[0], 512) + inner + strings.Repeat(pair[1], 512)); err != nil {
			t.Errorf("512 levels of %s: %v", pair[0], err)
		}
		if err := walk(strings.Repeat(pair[0], 513) + inner + strings.Repeat(pair[1], 513)); !errors.Is(err, ErrDepth) {
			t.Errorf("513 levels of %s: got %v, want ErrDepth", pair[0], err)
		}
		if err := walk(strings.Repeat(pair[0], 4<<20)); !errors.Is(err, ErrDepth) {
			t.Errorf("4 million levels of %s: got %v, want ErrDepth", pair[0], err)
		}
	}
}

func TestObjectHandsOutKeysAndValuesInOrder(t *testing.T) {
	t.Parallel()
	s := New([]byte(` {"a" : 1, "\u0062":{"c":[true,null]}, "a":"x"} `))
	var got []string
	err := s.Object(func(key []byte) error {
		value, err := s.Value()
		got = append(got, string(key)+"="+string(value))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	if want := `a=1 b={"c":[true,null]} a="x"`; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}

func TestStringsComeOutAsTheirExactBytes(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`""`:                       "",
		`"plain"`:                  "plain",
		`"\u00e9\ud83d\ude00"`:     "é😀",
		`"\"\\\/\b\f\n\r\t\u0000"`: "\"\\/\b\f\n\r\t\x00",
		"\"\xff\xfe\"":             "\xff\xfe",
		"\"\xff\\n\"":              "\xff\n",
		`"\ufffd\uffff\ufffe"`:     "\ufffd\uffff\ufffe",
	} {
		got, err := Bytes([]byte(value))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", value, got, err, want)
		}
	}
	for _, value := range []string{`"\ud800"`, `"\udc00"`, `"\ud800x"`, `"\ud800\n"`, `"\ud800\ud800"`, `"\ud83d\u0041"`} {
		if got, err := Bytes([]byte(value)); !errors.Is(err, ErrSurrogate) {
			t.Errorf("%s: got %q, %v, want ErrSurrogate", value, got, err)
		}
	}
}

func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"\u00e9",null,true]}`, `"\ud83d\ude00"`, `[[[`, `{"a":1,}`, "\"\xff\"", `-0.0E+1`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := New(text)
		value, err := s.Value()
		if err == nil {
			err = s.End()
		}
		if errors.Is(err, ErrDepth) {
			return
		}
		if valid := json.Valid(text); valid != (err == nil) {
			t.Fatalf("%q: json.Valid %v, scanner %v", text, valid, err)
		}
		if err != nil || !IsString(value) {
			return
		}
		got, err := Bytes(value)
		var want string
		if json.Unmarshal(value, &want) != nil {
			t.Fatalf("%q does not decode", value)
		}
		// Where encoding/json replaced nothing, both must agree.
		if !strings.ContainsRune(want, '\ufffd') && (err != nil || string(got) != want) {
			t.Fatalf("%q: got %q, %v, want %q", value, got, err, want)
		}
	})
}
