package billing

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// matches reports whether previous_attributes describe the object: every attribute they name has there the value
// they give. Without any, nothing is described.
//
// Within an object they may name some attributes only, so the same rule holds at every depth; null stands for what is
// absent. Elements of a list are matched by id where they have ids, since a list may come in another order.
func matches(previous, object []byte) bool {
	var want, have any
	if !decodeExact(previous, &want) || !decodeExact(object, &have) {
		return false
	}
	attributes, isObject := want.(map[string]any)
	return isObject && len(attributes) > 0 && contains(have, want)
}

// decodeExact keeps numbers as they are written.
func decodeExact(text []byte, into *any) bool {
	if len(text) == 0 {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(into) == nil
}

func contains(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, isObject := have.(map[string]any)
		if !isObject {
			return false
		}
		for name, value := range want {
			if !contains(object[name], value) {
				return false
			}
		}
		return true
	case []any:
		elements, isList := have.([]any)
		if !isList || len(elements) != len(want) {
			return false
		}
		byID := make(map[string]any, len(elements))
		for _, element := range elements {
			if id := idOf(element); id != "" {
				byID[id] = element
			}
		}
		for i, value := range want {
			element := elements[i]
			if id := idOf(value); id != "" {
				element = byID[id]
			}
			if !contains(element, value) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(have, want)
}

func idOf(element any) string {
	object, _ := element.(map[string]any)
	id, _ := object["id"].(string)
	return id
}
