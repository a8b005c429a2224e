from __future__ import annotations

from openapi_spec_validator import OpenAPIV31SpecValidator

from forecastle.http.mms_management_api import description


def test_the_description_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(description()).validate()
